// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/confirm_unrecorded.h"

#include <string_view>
#include <utility>

#include "analyze/detail/detail_sink.h"

namespace gpusonde::analyze {
namespace {

// The times of all events that are read in detail.
class TimeSink final : public DetailSink {
 public:
  explicit TimeSink(RecordedTime recorded) : recorded_(std::move(recorded)) {}

  uint32_t Name(std::string_view /*name*/) override { return 0; }
  void Detailed(const importers::EventBatch& batch) override {
    for (const importers::GpuEvent& event : batch.gpu) recorded_.Cover(event.start_ns, event.end_ns);
    for (const importers::Span& span : batch.spans) recorded_.Cover(span.start_ns, span.end_ns);
    for (const importers::SyncWait& wait : batch.syncs) recorded_.Cover(wait.start_ns, wait.end_ns);
  }

  const RecordedTime& recorded() const { return recorded_; }

 private:
  RecordedTime recorded_;
};

}  // namespace

bool MayBeUnrecorded(importers::TraceFormat format) {
  return format == importers::TraceFormat::kNsysSqlite || format == importers::TraceFormat::kKinetoJson;
}

Status ConfirmUnrecorded(const std::string& path, importers::TraceFormat format, const Options& options,
                         TraceState& state) {
  if (options.kernel_summary || !MayBeUnrecorded(format) || FindUnrecorded(state.recorded()).empty())
    return {};
  ASSIGN_OR_RETURN(const auto trace,
                   importers::OpenTrace(
                       path, {.partial = options.partial, .detail = true, .temp_limit = options.temp_limit}));
  TimeSink sink(state.recorded());
  TRY(ReadAll(*trace, options.partial, sink));
  state.SetUnrecorded(FindUnrecorded(sink.recorded()));
  return {};
}

}  // namespace gpusonde::analyze
