// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/confirm_unrecorded.h"

#include <span>
#include <string_view>
#include <utility>

namespace gpusonde::analyze {
namespace {

// The times of all events that are read in detail.
class TimeSink final : public importers::EventSink {
 public:
  explicit TimeSink(RecordedTime recorded) : recorded_(std::move(recorded)) {}

  uint32_t Name(std::string_view /*name*/) override { return 0; }
  void Group(const importers::ProcessGroup& /*group*/) override {}
  void Gpu(std::span<const importers::GpuEvent> /*events*/) override {}
  void Api(std::span<const importers::ApiCall> /*calls*/) override {}
  void Ranges(std::span<const importers::Range> /*ranges*/) override {}
  void Launch(const importers::MeasuredLaunch& /*launch*/,
              std::span<const importers::MetricValue> /*metrics*/) override {}
  void MetricTexts(int64_t /*count*/) override {}
  void Other(int64_t /*count*/) override {}
  void Drop(importers::Dropped /*reason*/, int64_t /*count*/) override {}
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
  ASSIGN_OR_RETURN(const auto reader, trace->MakeReader(sink));
  importers::Shard shard;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, trace->Next(shard));
    if (!more) break;
    Status read = reader->Read(shard);
    if (!read.has_value() && !options.partial) return Fail(std::move(read).error());
  }
  state.SetUnrecorded(FindUnrecorded(sink.recorded()));
  return {};
}

}  // namespace gpusonde::analyze
