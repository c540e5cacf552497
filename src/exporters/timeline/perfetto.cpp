// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/utf8.h"
#include "exporters/timeline/labels.h"
#include "exporters/timeline/packet_writer.h"
#include "exporters/timeline/perfetto_tracks.h"
#include "exporters/timeline/timeline_format.h"

// Perfetto's own format (src/exporters/proto/perfetto.proto), as track events: its GPU render stages have
// neither nesting nor, before 2026, arrows to the calls that submitted them. Times are ns since the Unix
// epoch.
namespace gpusonde::exporters {
namespace {

using model::GpuWork;
using model::ThreadSpan;
using perfetto::TrackEvent;

class PerfettoWriter final : public model::TimelineSink {
 public:
  explicit PerfettoWriter(Output output) : writer_(std::move(output)) {}

  Status Begin(const model::TimelineNames& names) override {
    tracks_.emplace(names, writer_);
    return writer_.WriteClock(names.start_ns);
  }
  Status Add(const GpuWork& work) override;
  Status Add(const ThreadSpan& span) override;
  Status Add(const model::Step& step) override;
  Status Add(const model::Incident& incident) override;
  Status Add(const model::MetricValue& value) override;
  Status End() override { return writer_.Flush(); }

 private:
  TrackEvent& BeginSpan(uint64_t track, int64_t start_ns, std::string_view category, std::string_view name);
  // Writes the event of BeginSpan and the span's end. Spans that end together end in either order.
  Status EndSpan(uint64_t track, int64_t end_ns);
  static void Join(TrackEvent& event, uint64_t correlation);

  PacketWriter writer_;
  std::optional<PerfettoTracks> tracks_;
  WorkNames names_;
  Correlations correlations_;
};

TrackEvent& PerfettoWriter::BeginSpan(uint64_t track, int64_t start_ns, std::string_view category,
                                      std::string_view name) {
  TrackEvent& event = writer_.NewEvent(start_ns, TrackEvent::TYPE_SLICE_BEGIN, track);
  writer_.AddCategory(event, category);
  writer_.SetName(event, name);
  return event;
}

Status PerfettoWriter::EndSpan(uint64_t track, int64_t end_ns) {
  TRY(writer_.WriteEvent());
  writer_.NewEvent(end_ns, TrackEvent::TYPE_SLICE_END, track);
  return writer_.WriteEvent();
}

// Work and the call that started it.
void PerfettoWriter::Join(TrackEvent& event, uint64_t correlation) {
  event.add_flow_ids(correlation + 1);  // 0 is none
  event.set_correlation_id(correlation);
}

Status PerfettoWriter::Add(const GpuWork& work) {
  constexpr std::string_view kCategories[] = {"kernel", "gpu_memcpy", "gpu_memset"};
  ASSIGN_OR_RETURN(const uint64_t track, tracks_->OfWork(work));
  TrackEvent& event =
      BeginSpan(track, work.start_ns, kCategories[static_cast<size_t>(work.kind)], names_.Of(work));
  const auto id = correlations_.IdOf(work.process, work.session, work.correlation);
  if (id.has_value()) Join(event, *id);
  const auto add = [&](std::string_view name, std::optional<int64_t> value) {
    if (value.has_value()) writer_.AddArgument(event, name).set_int_value(*value);
  };
  add("context", work.context);
  add("correlation", work.correlation < 0 ? std::nullopt : std::optional(work.correlation));
  if (work.kind == GpuWork::Kind::kKernel) {
    writer_.AddArgument(event, "grid").set_string_value(fmt::format("{}", fmt::join(work.grid, " × ")));
    writer_.AddArgument(event, "block").set_string_value(fmt::format("{}", fmt::join(work.block, " × ")));
    add("registers per thread", work.registers);
    add("shared memory", work.shared_bytes);
  } else {
    add("bytes", work.bytes);
  }
  add("graph node id", work.graph_node);
  return EndSpan(track, work.end_ns);
}

Status PerfettoWriter::Add(const ThreadSpan& span) {
  using enum ThreadSpan::Kind;
  ASSIGN_OR_RETURN(const uint64_t track,
                   span.kind == kStartEnd
                       ? tracks_->OfRow(span.process, "NVTX start/end ranges", span.start_ns, span.end_ns)
                       : tracks_->OfThread(span.process, span.tid, span.start_ns, span.end_ns));
  const std::string_view category = span.kind == kCall       ? std::string_view(span.domain)
                                    : span.kind == kOperator ? "cpu_op"
                                    : span.kind == kStartEnd ? "nvtx"
                                                             : "user_annotation";
  TrackEvent& event = BeginSpan(track, span.start_ns, category, span.name);
  if (StartsWork(span))
    if (const auto id = correlations_.IdOf(span.process, span.session, span.correlation)) Join(event, *id);
  if (span.kind != kCall && !span.domain.empty())
    writer_.AddArgument(event, "domain").set_string_value(ToUtf8(span.domain));
  return EndSpan(track, span.end_ns);
}

Status PerfettoWriter::Add(const model::Step& step) {
  const std::string row = step.tid == 0 ? "steps" : fmt::format("steps of thread {}", step.tid);
  ASSIGN_OR_RETURN(const uint64_t track, tracks_->OfRow(step.process, row, step.start_ns, step.end_ns));
  TrackEvent& event = BeginSpan(track, step.start_ns, "step", "step");
  writer_.AddArgument(event, "step").set_int_value(step.ordinal);
  return EndSpan(track, step.end_ns);
}

Status PerfettoWriter::Add(const model::Incident& incident) {
  const int64_t end_ns = incident.end_ns.value_or(incident.start_ns);
  ASSIGN_OR_RETURN(const uint64_t track,
                   tracks_->OfRow(incident.process, "incidents", incident.start_ns, end_ns));
  TrackEvent& event = BeginSpan(track, incident.start_ns, "incident", incident.cause);
  writer_.AddArgument(event, "sentence").set_string_value(ToUtf8(incident.sentence));
  writer_.AddArgument(event, "slowdown").set_double_value(incident.slowdown);
  writer_.AddArgument(event, "confidence").set_double_value(incident.confidence);
  return EndSpan(track, end_ns);
}

Status PerfettoWriter::Add(const model::MetricValue& value) {
  ASSIGN_OR_RETURN(const uint64_t track, tracks_->OfCounter(value));
  writer_.NewEvent(value.time_ns, TrackEvent::TYPE_COUNTER, track).set_double_counter_value(value.value);
  return writer_.WriteEvent();
}

}  // namespace

const TimelineFormat kPerfetto = {
    .name = "perfetto",
    .meaning = "Perfetto's protobuf of a timeline, for ui.perfetto.dev and trace_processor",
    .extension = ".pftrace",
    .create = [](Output output, const std::string& /*title*/) -> std::unique_ptr<model::TimelineSink> {
      return std::make_unique<PerfettoWriter>(std::move(output));
    }};

}  // namespace gpusonde::exporters
