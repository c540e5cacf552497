// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/json_writer.h"
#include "base/time.h"
#include "exporters/timeline/chrome_tracks.h"
#include "exporters/timeline/labels.h"
#include "exporters/timeline/timeline_format.h"
#include "model/metric_catalogue.h"

// Chrome's trace event format, in the dialect of the PyTorch profiler (Kineto), which more tools read:
// https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU and
// https://github.com/pytorch/kineto/blob/main/libkineto/src/output_json.cpp.
//
// One event per line. Times are µs with three decimals since midnight UTC before the export begins: a
// JavaScript number holds them exactly, as it doesn't those since 1970. baseTimeNanoseconds is that midnight.
namespace gpusonde::exporters {
namespace {

using model::GpuWork;
using model::ThreadSpan;

constexpr size_t kPieceBytes = size_t{1} << 20;

class ChromeWriter final : public model::TimelineSink {
 public:
  ChromeWriter(Output output, std::string title) : output_(std::move(output)), title_(std::move(title)) {}

  Status Begin(const model::TimelineNames& names) override;
  Status Add(const GpuWork& work) override;
  Status Add(const ThreadSpan& span) override;
  Status Add(const model::Step& step) override;
  Status Add(const model::Incident& incident) override;
  Status Add(const model::MetricValue& value) override;
  Status End() override;

 private:
  using Track = ChromeTracks::Track;

  // The beginning of an event, up to its arguments.
  JsonWriter Event(const char* phase, std::string_view category, std::string_view name, const Track& track,
                   int64_t time_ns) const;
  JsonWriter Complete(std::string_view category, std::string_view name, const Track& track, int64_t start_ns,
                      int64_t end_ns) const;
  // An arrow from a call to its GPU work begins ("s") or ends ("f").
  Status Flow(const char* phase, uint64_t id, const Track& track, int64_t time_ns);
  // A span that need not nest in others: events of the same category, name and `id` share a track.
  Status Asynchronous(std::string_view category, std::string_view name, uint64_t id, const Track& track,
                      int64_t start_ns, int64_t end_ns, JsonWriter arguments);
  std::string Micros(int64_t ns) const;
  Status Emit(JsonWriter& event);

  Output output_;
  std::string title_;
  std::string piece_;
  bool any_ = false;
  int64_t base_ns_ = 0;
  std::optional<ChromeTracks> tracks_;
  WorkNames names_;
  Correlations correlations_;
  uint64_t ranges_ = 0;
};

Status ChromeWriter::Begin(const model::TimelineNames& names) {
  base_ns_ = std::max<int64_t>(0, names.start_ns - names.start_ns % kNanosPerDay);
  tracks_.emplace(names, [this](JsonWriter& event) { return Emit(event); });
  JsonWriter head;
  head.BeginObject().Field("schemaVersion", 1).Field("baseTimeNanoseconds", base_ns_);
  head.Field("displayTimeUnit", "ms").Field("traceName", title_).Key("deviceProperties").BeginArray();
  for (const model::Device& device : names.devices) {
    head.BeginObject().Field("id", tracks_->PidOf(device)).Field("name", device.name);
    if (device.memory_bytes.has_value()) head.Field("totalGlobalMem", *device.memory_bytes);
    if (device.sm_count.has_value()) head.Field("numSms", *device.sm_count);
    head.EndObject();
  }
  head.EndArray().Key("traceEvents").BeginArray();
  piece_ = head.Take() + "\n";
  return {};
}

std::string ChromeWriter::Micros(int64_t ns) const {
  const uint64_t size = ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", size / 1000, size % 1000);
}

Status ChromeWriter::Emit(JsonWriter& event) {
  if (std::exchange(any_, true)) piece_ += ",\n";
  piece_ += event.Take();
  if (piece_.size() < kPieceBytes) return {};
  TRY(output_(piece_));
  piece_.clear();
  return {};
}

JsonWriter ChromeWriter::Event(const char* phase, std::string_view category, std::string_view name,
                               const Track& track, int64_t time_ns) const {
  JsonWriter event;
  event.BeginObject().Field("ph", phase);
  if (!category.empty()) event.Field("cat", category);
  event.Field("name", name).Field("pid", track.pid).Field("tid", track.tid);
  event.Key("ts").Raw(Micros(time_ns - base_ns_));
  return event;
}

JsonWriter ChromeWriter::Complete(std::string_view category, std::string_view name, const Track& track,
                                  int64_t start_ns, int64_t end_ns) const {
  JsonWriter event = Event("X", category, name, track, start_ns);
  event.Key("dur").Raw(Micros(end_ns - start_ns)).Key("args").BeginObject();
  return event;
}

Status ChromeWriter::Flow(const char* phase, uint64_t id, const Track& track, int64_t time_ns) {
  constexpr std::string_view kName = "ac2g";  // asynchronous, from CPU to GPU
  JsonWriter event = Event(phase, kName, kName, track, time_ns);
  event.Field("id", static_cast<int64_t>(id));
  if (*phase == 'f') event.Field("bp", "e");
  event.EndObject();
  return Emit(event);
}

Status ChromeWriter::Asynchronous(std::string_view category, std::string_view name, uint64_t id,
                                  const Track& track, int64_t start_ns, int64_t end_ns,
                                  JsonWriter arguments) {
  const std::string text = fmt::format("{:#x}", id);
  JsonWriter begin = Event("b", category, name, track, start_ns);
  begin.Field("id", text).Key("args").Raw(arguments.Take()).EndObject();
  TRY(Emit(begin));
  JsonWriter end = Event("e", category, name, track, end_ns);
  end.Field("id", text).EndObject();
  return Emit(end);
}

Status ChromeWriter::Add(const GpuWork& work) {
  constexpr std::string_view kCategories[] = {"kernel", "gpu_memcpy", "gpu_memset"};
  ASSIGN_OR_RETURN(const Track track, tracks_->OfWork(work));
  const auto id = correlations_.IdOf(work.process, work.session, work.correlation);
  JsonWriter event = Complete(kCategories[static_cast<size_t>(work.kind)], names_.Of(work), track,
                              work.start_ns, work.end_ns);
  event.Field("device", track.pid).Field("context", work.context).Field("stream", work.stream);
  if (id.has_value()) event.Field("correlation", static_cast<int64_t>(*id));
  if (work.kind == GpuWork::Kind::kKernel) {
    event.Column("grid", work.grid).Column("block", work.block);
    if (work.registers.has_value()) event.Field("registers per thread", *work.registers);
    if (work.shared_bytes.has_value()) event.Field("shared memory", *work.shared_bytes);
  } else {
    event.Field("bytes", work.bytes);
  }
  if (work.graph_node.has_value()) event.Field("graph node id", *work.graph_node);
  event.EndObject().EndObject();
  TRY(Emit(event));
  return id.has_value() ? Flow("f", *id, track, work.start_ns) : Status{};
}

Status ChromeWriter::Add(const ThreadSpan& span) {
  ASSIGN_OR_RETURN(const Track track, tracks_->OfThread(span.process, span.tid));
  if (span.kind == ThreadSpan::Kind::kStartEnd) {
    JsonWriter arguments;
    arguments.BeginObject().Field("domain", span.domain).EndObject();
    return Asynchronous("nvtx", span.name, ++ranges_, track, span.start_ns, span.end_ns,
                        std::move(arguments));
  }
  const bool is_call = span.kind == ThreadSpan::Kind::kCall;
  JsonWriter event = Complete(is_call                                    ? span.domain
                              : span.kind == ThreadSpan::Kind::kOperator ? "cpu_op"
                                                                         : "user_annotation",
                              span.name, track, span.start_ns, span.end_ns);
  const auto id = is_call ? correlations_.IdOf(span.process, span.session, span.correlation) : std::nullopt;
  if (id.has_value()) event.Field("correlation", static_cast<int64_t>(*id));
  if (!is_call && !span.domain.empty()) event.Field("domain", span.domain);
  event.EndObject().EndObject();
  TRY(Emit(event));
  return id.has_value() && StartsWork(span) ? Flow("s", *id, track, span.start_ns) : Status{};
}

Status ChromeWriter::Add(const model::Step& step) {
  ASSIGN_OR_RETURN(const int64_t pid, tracks_->OfProcess(step.process));
  JsonWriter arguments;
  arguments.BeginObject().Field("step", step.ordinal);
  if (step.tid != 0) arguments.Field("thread", step.tid);
  arguments.EndObject();
  return Asynchronous("step", "step", step.type.low, {.pid = pid, .tid = pid}, step.start_ns, step.end_ns,
                      std::move(arguments));
}

Status ChromeWriter::Add(const model::Incident& incident) {
  ASSIGN_OR_RETURN(const int64_t pid, tracks_->OfProcess(incident.process));
  JsonWriter arguments;
  arguments.BeginObject().Field("sentence", incident.sentence).Field("slowdown", incident.slowdown);
  arguments.Field("confidence", incident.confidence).EndObject();
  return Asynchronous("incident", "incident: " + incident.cause, incident.incident.low,
                      {.pid = pid, .tid = pid}, incident.start_ns,
                      incident.end_ns.value_or(incident.start_ns), std::move(arguments));
}

Status ChromeWriter::Add(const model::MetricValue& value) {
  if (!std::isfinite(value.value)) return {};  // JSON has no such numbers
  ASSIGN_OR_RETURN(const int64_t pid, value.process.has_value()  ? tracks_->OfProcess(*value.process)
                                      : value.device.has_value() ? tracks_->OfDevice(*value.device)
                                                                 : tracks_->OfMachine(value.source));
  std::string name = value.metric;
  // A process may use several devices, each with a value of its own.
  if (value.process.has_value() && value.device.has_value()) {
    ASSIGN_OR_RETURN(const int64_t device, tracks_->OfDevice(*value.device));
    name += fmt::format(" (GPU {})", device);
  }
  const std::optional<model::Metric> metric = model::FindMetric(value.metric);
  const std::string_view unit = metric.has_value() ? model::InfoOf(*metric).unit : "";
  JsonWriter event = Event("C", "", name, {.pid = pid, .tid = 0}, value.time_ns);
  event.Key("args").BeginObject().Field(unit.empty() ? "value" : unit, value.value).EndObject().EndObject();
  return Emit(event);
}

Status ChromeWriter::End() {
  piece_ += "\n]}\n";
  return output_(piece_);
}

}  // namespace

const TimelineFormat kChrome = {
    .name = "chrome",
    .meaning = "trace event JSON of a timeline, for Perfetto, chrome://tracing and Kineto's readers",
    .extension = ".trace.json",
    .create = [](Output output, const std::string& title) -> std::unique_ptr<model::TimelineSink> {
      return std::make_unique<ChromeWriter>(std::move(output), title);
    }};

}  // namespace gpusonde::exporters
