// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "analyze/report.h"
#include "analyze/report/launch_patterns.h"
#include "base/json_writer.h"

namespace gpusonde::analyze {
namespace {

constexpr int32_t kVersion = 1;

void Write(JsonWriter& json, const TraceLine& line) {
  json.BeginObject().Field("path", line.path).Field("format", line.format).Field("events", line.events);
  json.Field("kernels", line.kernels).Field("kernel_ns", line.kernel_ns);
  json.Field("memcpys", line.memcpys)
      .Field("memcpy_bytes", line.memcpy_bytes)
      .Field("memcpy_ns", line.memcpy_ns);
  json.Field("memsets", line.memsets).Field("api_calls", line.api_calls).Field("ranges", line.ranges);
  json.Field("dropped", line.dropped).Field("duration_ns", line.duration_ns).EndObject();
}

void WriteDurations(JsonWriter& json, const DurationLine& line) {
  json.Field("count", line.count).Field("total_ns", line.total_ns);
  json.Field("min_ns", line.min_ns).Field("max_ns", line.max_ns);
  json.Field("mean_ns", line.mean_ns).Field("stddev_ns", line.stddev_ns);
  json.Field("p50_ns", line.p50_ns).Field("p90_ns", line.p90_ns).Field("p99_ns", line.p99_ns);
  json.Field("outliers", line.outliers);
}

void Write(JsonWriter& json, const DurationLine& line) {
  json.BeginObject().Field("name", line.name);
  WriteDurations(json, line);
  json.EndObject();
}

void Write(JsonWriter& json, const TransferLine& line) {
  json.BeginObject().Field("kind", line.kind).Field("source", line.source).Field("target", line.target);
  json.Field("bytes", line.bytes);
  WriteDurations(json, line.durations);
  json.EndObject();
}

void Write(JsonWriter& json, std::string_view key, const IdleLine& line) {
  json.Key(key).BeginObject().Field("host_ns", line.host_ns).Field("back_to_back_ns", line.back_to_back_ns);
  json.Field("device_ns", line.device_ns).Field("unknown_ns", line.unknown_ns).EndObject();
}

void Write(JsonWriter& json, const std::vector<HostGapsLine::Gap>& longest) {
  json.Key("longest").BeginArray();
  for (const HostGapsLine::Gap& gap : longest)
    json.BeginObject().Field("begin_ns", gap.begin_ns).Field("end_ns", gap.end_ns).EndObject();
  json.EndArray();
}

void Write(JsonWriter& json, const HostGapsLine& line) {
  json.Key("host_gaps").BeginObject().Field("short_ns", line.short_ns);
  json.Field("short_count", line.short_count).Field("long_ns", line.long_ns);
  json.Field("long_count", line.long_count);
  Write(json, line.longest);
  json.EndObject();
}

void Write(JsonWriter& json, const LoaderLine& line) {
  json.Key("loader").BeginObject().Field("count", line.count).Field("total_ns", line.total_ns);
  json.Field("idle_ns", line.idle_ns);
  Write(json, line.longest);
  json.EndObject();
}

void Write(JsonWriter& json, const FullQueueLine& line) {
  json.Key("full_queue").BeginObject().Field("count", line.count).Field("blocked_ns", line.blocked_ns);
  Write(json, line.longest);
  json.EndObject();
}

void Write(JsonWriter& json, const BlockingSetsLine& line) {
  json.Key("blocking_sets").BeginObject().Field("count", line.count).Field("call_ns", line.call_ns);
  json.Field("set_ns", line.set_ns).EndObject();
}

void Write(JsonWriter& json, const DistributionLine& line) {
  json.BeginObject().Field("name", line.name).Key("bins").BeginArray();
  for (const DistributionLine::Bin& bin : line.bins) {
    json.BeginObject().Field("low_ns", bin.low_ns).Field("high_ns", bin.high_ns);
    json.Field("count", bin.count).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, std::string_view key, const DurationLine& line) {
  json.Key(key).BeginObject();
  WriteDurations(json, line);
  json.EndObject();
}

void Write(JsonWriter& json, const RankLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Field("process", line.process).Field("device", line.device).Field("events", line.events);
  json.Field("begin_ns", line.begin_ns)
      .Field("span_ns", line.span_ns)
      .Field("left_out_ns", line.left_out_ns)
      .Field("busy_ns", line.busy_ns)
      .Field("idle_ns", line.idle_ns);
  json.Field("compute_ns", line.compute_ns).Field("comm_ns", line.comm_ns);
  json.Field("exposed_comm_ns", line.exposed_comm_ns).Field("overlap_ns", line.overlap_ns);
  json.Field("transfer_ns", line.transfer_ns).Field("transfer_overlap_ns", line.transfer_overlap_ns);
  json.Field("graph_ns", line.graph_ns);
  Write(json, "idle", line.idle);
  Write(json, "gaps", line.gaps);
  Write(json, "launch_latency", line.launch_latency);
  Write(json, "queue_delay", line.queue_delay);
  json.Key("queue_length").BeginObject().Field("max", line.queue_max).Field("mean", line.queue_mean);
  json.Field("time_mean", line.queue_time_mean).EndObject();
  json.Field("first_ns", line.first_ns);
  Write(json, line.host_gaps);
  json.Column("busy_windows_ns", line.busy_windows_ns);
  Write(json, line.loader);
  Write(json, line.full_queue);
  Write(json, line.blocking_sets);
  json.EndObject();
}

void Write(JsonWriter& json, const VariabilityLine& line) {
  json.BeginObject()
      .Field("name", line.name)
      .Field("communication", line.communication)
      .Field("count", line.count)
      .Field("excess_ns", line.excess_ns);
  json.Field("robust_cv", line.robust_cv)
      .Key("variance_explained")
      .BeginObject()
      .Field("time", line.explained.time);
  json.Field("rank", line.explained.rank)
      .Field("stream", line.explained.stream)
      .Field("shape", line.explained.shape);
  json.EndObject().Field("outliers", line.outliers).Key("slowest").BeginArray();
  for (const SlowLine& slow : line.slowest) {
    json.BeginObject().Field("rank", slow.rank).Field("stream", int64_t{slow.stream});
    json.Field("start_ns", slow.start_ns).Field("duration_ns", slow.duration_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const WindowLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("begin_ns", line.begin_ns).Field("end_ns", line.end_ns);
  json.Field("kernels", line.kernels).Field("kernel_ns", line.kernel_ns);
  json.Field("ratio", line.ratio).Field("z", line.z).EndObject();
}

void Write(JsonWriter& json, const CopyEffectLine& line) {
  json.BeginObject().Field("name", line.name).Field("relation", line.after ? "after" : "during");
  json.Field("copies", line.any_copy ? "any" : "class").Field("kind", line.copy_kind);
  json.Field("memory", line.memory).Field("size", line.size).Field("count", line.count);
  json.Field("ratio", line.ratio).Field("low", line.low).Field("high", line.high);
  json.Field("excess_ns", line.excess_ns).EndObject();
}

void Write(JsonWriter& json, const SlowRankLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("kernels", line.kernels).Field("ratio", line.ratio);
  json.Field("low", line.low).Field("high", line.high).Key("mostly");
  if (line.mostly.name.empty()) {
    json.Raw("null");
  } else {
    json.BeginObject().Field("name", line.mostly.name).Field("ratio", line.mostly.ratio);
    json.Field("excess_ns", line.mostly.excess_ns).EndObject();
  }
  json.EndObject();
}

void Write(JsonWriter& json, const CollectiveLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("matched", line.matched).Field("last", line.last);
  json.Field("waited_ns", line.waited_ns).Field("delayed_ns", line.delayed_ns);
  json.Field("clock_offset_ns", line.clock_offset_ns).Field("clock_residual_ns", line.clock_residual_ns);
  json.Field("straggler", line.straggler).EndObject();
}

void Write(JsonWriter& json, const BandwidthLine& line) {
  json.BeginObject().Field("group", line.group).Field("ranks", line.ranks);
  json.Field("operation", line.operation)
      .Field("min_bytes", line.min_bytes)
      .Field("max_bytes", line.max_bytes);
  json.Field("count", line.count).Field("bytes", line.bytes).Field("total_ns", line.total_ns);
  json.Field("skew_removed", line.skew_removed).Field("skew_ns", line.skew_ns);
  json.Field("algorithm_bytes_per_s", line.algorithm_bytes_per_s);
  json.Field("bus_bytes_per_s", line.bus_bytes_per_s).EndObject();
}

void Write(JsonWriter& json, const CommunicationLine& line) {
  json.BeginObject().Field("name", line.name).Field("library", line.library).Field("count", line.count);
  json.Field("total_ns", line.total_ns).EndObject();
}

void Write(JsonWriter& json, const KernelMetricLine& line) {
  json.BeginObject().Field("name", line.name).Field("metric", line.metric).Field("unit", line.unit);
  json.Field("launches", line.launches).Field("ranks", line.ranks);
  json.Field("min", line.min).Field("max", line.max).Field("mean", line.mean).Field("stddev", line.stddev);
  json.Field("p50", line.p50).Field("p90", line.p90).Field("robust_cv", line.robust_cv);
  json.Key("variance_explained").BeginObject().Field("rank", line.share_rank);
  json.Field("shape", line.share_shape).EndObject();
  json.Field("correlation", line.correlation);
  json.Field("correlation_within_shape", line.correlation_within_shape).EndObject();
}

void Write(JsonWriter& json, const RankKernelsLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Key("kernels").BeginArray();
  for (const RankKernelsLine::Kernel& kernel : line.kernels) {
    json.BeginObject().Field("name", kernel.name).Field("count", kernel.count);
    json.Field("total_ns", kernel.total_ns).EndObject();
  }
  json.EndArray().Field("others_ns", line.others_ns).EndObject();
}

void Write(JsonWriter& json, const StepParts& parts) {
  json.Field("compute_ns", parts.compute_ns).Field("exposed_comm_ns", parts.exposed_comm_ns);
  json.Field("other_ns", parts.other_ns).Field("idle_ns", parts.idle_ns);
}

void Write(JsonWriter& json, const StepsLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Field("ranges", line.label);
  Write(json, "durations", line.durations);
  json.Key("typical").BeginObject();
  Write(json, line.typical);
  json.EndObject().Key("slowest").BeginArray();
  for (const StepsLine::Slow& slow : line.slowest) {
    json.BeginObject().Field("number", slow.number).Field("begin_ns", slow.begin_ns);
    json.Field("step_ns", slow.step_ns).Field("gpu_begin_ns", slow.gpu_begin_ns).Field("gpu_ns", slow.gpu_ns);
    Write(json, slow.parts);
    json.Key("kernels").BeginArray();
    for (const StepsLine::Kernel& kernel : slow.kernels)
      json.BeginObject().Field("name", kernel.name).Field("excess_ns", kernel.excess_ns).EndObject();
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const SyncsLine::Sum& sum) {
  json.Field("count", sum.count).Field("total_ns", sum.total_ns).Field("busy_ns", sum.busy_ns);
  json.Field("idle_ns", sum.idle_ns());
}

void Write(JsonWriter& json, const SyncsLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  Write(json, line.all);
  json.Key("calls").BeginArray();
  for (const SyncsLine::Call& call : line.calls) {
    json.BeginObject().Field("name", call.name);
    Write(json, call.sum);
    json.EndObject();
  }
  json.EndArray().Key("threads").BeginArray();
  for (const SyncsLine::Thread& thread : line.threads) {
    json.BeginObject().Field("thread", thread.thread);
    Write(json, thread.sum);
    json.EndObject();
  }
  json.EndArray();
  if (line.typical_step.has_value()) {
    json.Key("typical_step").BeginObject();
    Write(json, *line.typical_step);
    json.EndObject();
  } else {
    json.Field("typical_step", std::optional<int64_t>());
  }
  json.EndObject();
}

void Write(JsonWriter& json, const ConcurrencyLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Column("running_ns", line.running_ns).Field("mean", line.mean).Key("kinds").BeginArray();
  for (const ConcurrencyLine::Kinds& kinds : line.kinds) {
    json.BeginObject().Field("first", kinds.first).Field("second", kinds.second);
    json.Field("shared_ns", kinds.shared_ns).EndObject();
  }
  json.EndArray().Key("kind_times").BeginArray();
  for (const ConcurrencyLine::KindTime& time : line.kind_times)
    json.BeginObject().Field("kind", time.kind).Field("busy_ns", time.busy_ns).EndObject();
  json.EndArray().Key("streams").BeginArray();
  for (const ConcurrencyLine::Stream& stream : line.streams) {
    json.BeginObject().Field("stream", stream.stream).Field("events", stream.events);
    json.Field("busy_ns", stream.busy_ns);
    Write(json, "gaps", stream.gaps);
    json.EndObject();
  }
  json.EndArray().Key("pairs").BeginArray();
  for (const ConcurrencyLine::Pair& pair : line.pairs) {
    json.BeginObject().Field("first", pair.first).Field("second", pair.second);
    json.Field("shared_ns", pair.shared_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const LaunchPatternLine::Thread& thread) {
  json.BeginObject().Field("thread", thread.thread).Field("pattern", PatternText(thread.pattern()));
  json.Field("launches", thread.launches).Field("span_ns", thread.span_ns);
  json.Field("launches_per_s", thread.launches_per_s());
  // Of nothing there is no median.
  const auto of = [](int64_t count, int64_t ns) { return count > 0 ? std::optional(ns) : std::nullopt; };
  const int64_t gaps = thread.launches - 1;
  json.Field("gap_p50_ns", of(gaps, thread.gap_p50_ns)).Field("gap_p99_ns", of(gaps, thread.gap_p99_ns));
  json.Field("gap_max_ns", of(gaps, thread.gap_max_ns));
  json.Field("pause_from_ns", thread.pause_from_ns).Field("pauses", thread.pauses);
  json.Field("pauses_ns", thread.pauses_ns).Field("pause_p50_ns", of(thread.pauses, thread.pause_p50_ns));
  json.Field("drained_pauses", thread.drained_pauses).Field("bursts", thread.bursts);
  json.Field("burst_launches", thread.burst_launches);
  json.Field("burst_gap_p50_ns", of(thread.bursts, thread.burst_gap_p50_ns));
  json.Field("behind_p50_ns", thread.behind_p50_ns).Field("behind_p99_ns", thread.behind_p99_ns);
  json.Field("waiting_mean", thread.waiting_mean).EndObject();
}

void Write(JsonWriter& json, const LaunchPatternLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Key("threads").BeginArray();
  for (const LaunchPatternLine::Thread& thread : line.threads) Write(json, thread);
  json.EndArray().Field("other_launches", line.others).EndObject();
}

void Write(JsonWriter& json, const OperatorLine& line) {
  json.BeginObject().Field("kind", line.kind).Field("name", line.name).Field("calls", line.calls);
  json.Field("host_ns", line.host_ns).Field("launches", line.launches).Field("self_ns", line.self_ns);
  json.Field("total_ns", line.total_ns).Key("kernels").BeginArray();
  for (const OperatorLine::Kernel& kernel : line.kernels) {
    json.BeginObject().Field("name", kernel.name).Field("count", kernel.count);
    json.Field("total_ns", kernel.total_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const CriticalPathLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Field("number", line.number).Field("slow", line.slow).Field("begin_ns", line.begin_ns);
  json.Field("end_ns", line.end_ns).Key("parts").BeginArray();
  for (const CriticalPathLine::Part& part : line.parts) {
    json.BeginObject().Field("kind", part.kind).Field("name", part.name).Field("count", part.count);
    json.Field("total_ns", part.total_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const WavesLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Field("known_ns", line.known_ns).Field("unknown_ns", line.unknown_ns);
  json.Field("lost_ns", line.lost_ns).Key("kernels").BeginArray();
  for (const WavesLine::Kernel& kernel : line.kernels) {
    json.BeginObject().Field("name", kernel.name).Field("count", kernel.count);
    json.Field("total_ns", kernel.total_ns).Field("lost_ns", kernel.lost_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const SequencesLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Key("sequences").BeginArray();
  for (const SequencesLine::Sequence& sequence : line.sequences) {
    json.BeginObject().Key("kernels").BeginArray();
    for (const std::string& kernel : sequence.kernels) json.Value(kernel);
    json.EndArray().Field("count", sequence.count).Field("kernel_ns", sequence.kernel_ns);
    json.Field("gap_ns", sequence.gap_ns).Field("first_ns", sequence.first_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const ClockLine& line) {
  json.BeginObject().Field("rank", line.rank).Field("trace", static_cast<int64_t>(line.trace));
  json.Field("samples", line.samples).Field("usual_mhz", line.usual_mhz).Field("lowest_mhz", line.lowest_mhz);
  json.Field("slow_ns", line.slow_ns).Field("slow_low_ns", line.slow_low_ns);
  json.Field("other_low_ns", line.other_low_ns).Field("lost_ns", line.lost_ns);
  json.Field("throttle_reasons", static_cast<int64_t>(line.throttle_reasons));
  Write(json, line.longest);
  json.EndObject();
}

void Write(JsonWriter& json, const AdviceLine& line) {
  json.BeginObject().Field("rule", line.rule).Field("rank", line.rank).Field("ranks", line.ranks);
  json.Field("gain_ns", line.gain_ns).Field("span_ns", line.span_ns).Field("finding", line.finding);
  json.Field("action", line.action).Field("gain_basis", line.gain_basis).Key("names").BeginArray();
  for (const std::string& name : line.names) json.Value(name);
  json.EndArray().Key("places").BeginArray();
  for (const AdviceLine::Place& place : line.places) {
    json.BeginObject().Field("trace", static_cast<int64_t>(place.trace)).Field("rank", place.rank);
    json.Field("begin_ns", place.begin_ns).Field("end_ns", place.end_ns).EndObject();
  }
  json.EndArray().EndObject();
}

void Write(JsonWriter& json, const Note& note) {
  json.BeginObject().Field("trace", static_cast<int64_t>(note.trace)).Field("kind", Name(note.kind));
  json.Field("count", note.count);
  if (note.time.has_value())
    json.Field("times", note.time->times)
        .Field("begin_ns", note.time->begin_ns)
        .Field("end_ns", note.time->end_ns);
  json.EndObject();
}

template <class Line>
void WriteLines(JsonWriter& json, std::string_view key, const std::vector<Line>& lines) {
  json.Key(key).BeginArray();
  for (const Line& line : lines) Write(json, line);
  json.EndArray();
}

}  // namespace

std::string ToJson(const Report& report) {
  JsonWriter json;
  json.BeginObject().Field("version", kVersion);
  WriteLines(json, "traces", report.traces);
  WriteLines(json, "kernels", report.kernels);
  WriteLines(json, "memcpys", report.memcpys);
  WriteLines(json, "memsets", report.memsets);
  WriteLines(json, "graphs", report.graphs);
  WriteLines(json, "api_calls", report.api_calls);
  WriteLines(json, "ranks", report.ranks);
  WriteLines(json, "variability", report.variability);
  WriteLines(json, "windows", report.windows);
  WriteLines(json, "copy_effects", report.copy_effects);
  WriteLines(json, "slow_ranks", report.slow_ranks);
  WriteLines(json, "collectives", report.collectives);
  WriteLines(json, "bandwidth", report.bandwidth);
  WriteLines(json, "communication", report.communication);
  WriteLines(json, "kernel_metrics", report.kernel_metrics);
  WriteLines(json, "distributions", report.distributions);
  WriteLines(json, "rank_kernels", report.rank_kernels);
  WriteLines(json, "steps", report.steps);
  WriteLines(json, "syncs", report.syncs);
  WriteLines(json, "concurrency", report.concurrency);
  WriteLines(json, "launch_patterns", report.launch_patterns);
  WriteLines(json, "clocks", report.clocks);
  WriteLines(json, "operators", report.operators);
  WriteLines(json, "critical_paths", report.critical_paths);
  WriteLines(json, "waves", report.waves);
  WriteLines(json, "sequences", report.sequences);
  WriteLines(json, "advice", report.advice);
  json.Field("alignment", report.alignment == Alignment::kCollectives ? "collectives" : "none");
  WriteLines(json, "notes", report.notes);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::analyze
