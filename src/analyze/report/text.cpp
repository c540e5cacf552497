// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/report.h"
#include "analyze/report/concurrency.h"
#include "analyze/report/critical_paths.h"
#include "analyze/report/launch_patterns.h"
#include "analyze/report/operators.h"
#include "analyze/report/quantities.h"
#include "analyze/report/sentences.h"
#include "base/counted.h"
#include "base/printable.h"
#include "base/saturated.h"
#include "importers/trace.h"
#include "model/short_names.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kLinesShown = 20;
constexpr size_t kFindingsShown = 12;

class TextWriter {
 public:
  explicit TextWriter(const Report& report) : report_(report), shown_(NamesIn(report)) {}

  std::string Write() {
    Findings();
    Advice();
    Traces();
    Notes();
    Ranks();
    Concurrency();
    LaunchPatterns();
    Steps();
    CriticalPaths();
    Durations("Kernels", report_.kernels);
    Durations("CUDA graphs", report_.graphs);
    Communication();
    Bandwidth();
    Transfers("Copies", report_.memcpys);
    Transfers("Sets", report_.memsets);
    Durations("API calls", report_.api_calls);
    Syncs();
    Operators("Operators", "operator");
    Operators("Modules", "module");
    Operators("Ranges", "range");
    Waves();
    Sequences();
    Metrics();
    return std::move(out_);
  }

 private:
  template <class... Args>
  void Line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }

  void Findings() {
    const ReportSentences sentences = SentencesOf(report_, shown_);
    std::vector<std::string_view> all;
    for (const std::string& sentence : sentences.overview) all.push_back(sentence);
    for (const Finding& finding : sentences.findings) all.push_back(finding.text);
    if (all.empty()) return;
    const size_t shown = std::min(all.size(), kFindingsShown);
    for (size_t i = 0; i < shown; ++i) Line("- {}", all[i]);
    if (all.size() > shown) Line("- … and {} more, in the JSON", all.size() - shown);
    Line("");
  }

  void Advice() {
    if (report_.advice.empty()) return;
    Line("Advice");
    for (const AdviceLine& advice : report_.advice) {
      const AdviceSentences sentences = SentencesOf(advice, report_, shown_);
      Line("- {}\n  Gain: {}.", sentences.finding, sentences.gain);
      if (!sentences.evidence.empty()) Line("  Evidence: {}.", sentences.evidence);
    }
    Line("");
  }

  void Traces() {
    const size_t shown = std::min(report_.traces.size(), kLinesShown);
    for (const TraceLine& trace : std::span(report_.traces).first(shown)) {
      const std::string copies =
          trace.memcpys == 1 ? std::string("1 copy") : fmt::format("{} copies", trace.memcpys);
      Line("{} ({}): {} over {}: {} ({} of kernel time), {} ({}, {}), {}, {}, {}.", Printable(trace.path),
           trace.format, Counted(trace.events, "event"), Time(trace.duration_ns),
           Counted(trace.kernels, "kernel"), Time(trace.kernel_ns), copies, Bytes(trace.memcpy_bytes),
           Time(trace.memcpy_ns), Counted(trace.memsets, "set"), Counted(trace.api_calls, "API call"),
           Counted(trace.ranges, "range"));
      if (trace.format == importers::Name(importers::TraceFormat::kNvprofSqlite))
        Line(
            "  The reader of this format follows its documentation and was not tested with a real file yet.");
      if (trace.graphs > 0)
        Line("  {} {} of CUDA graphs traced as a whole ({}): the trace doesn't say what ran in them.",
             trace.graphs, trace.graphs == 1 ? "launch" : "launches", Time(trace.graph_ns));
      if (trace.kernels + trace.memcpys + trace.memsets + trace.graphs == 0)
        Line("  It has no GPU events.{}",
             trace.format == importers::Name(importers::TraceFormat::kSonde)
                 ? ""
                 : " Profilers record them if told to: PyTorch's with ProfilerActivity.CUDA, Nsight Systems "
                   "with --trace=cuda.");
    }
    if (report_.traces.size() > shown) Line("… and {} more traces", report_.traces.size() - shown);
  }

  void Notes() {
    for (const Note& note : report_.notes)
      Line("Note: {}: {}.", Printable(report_.traces[note.trace].path), SentenceOf(note, report_));
  }

  // The metrics that vary; per kernel, those that correlate best with its duration come first.
  void Metrics() {
    if (report_.kernel_metrics.empty()) return;
    constexpr size_t kPerKernel = 5;
    Line(
        "\nNsight Compute metrics that vary (r: with the duration, among launches of one shape)\n"
        "{:>8} {:>14} {:>14} {:>14} {:>6} {:>6} {:>6}  metric, kernel",
        "launches", "mean", "min", "max", "cv", "rank", "r");
    size_t shown = 0;
    for (size_t begin = 0; begin < report_.kernel_metrics.size() && shown < kLinesShown;) {
      size_t end = begin;
      std::vector<const KernelMetricLine*> varying;
      const std::string& name = report_.kernel_metrics[begin].name;
      for (; end < report_.kernel_metrics.size() && report_.kernel_metrics[end].name == name; ++end)
        if (report_.kernel_metrics[end].stddev > 0) varying.push_back(&report_.kernel_metrics[end]);
      std::ranges::stable_sort(varying, std::greater<>(), [](const auto* line) { return Strength(*line); });
      for (size_t i = 0; i < std::min(varying.size(), kPerKernel) && shown < kLinesShown; ++i, ++shown)
        MetricRow(*varying[i]);
      begin = end;
    }
    Line("All {} are in the JSON.", report_.kernel_metrics.size());
  }
  void MetricRow(const KernelMetricLine& line) {
    const auto number = [&](double value) { return fmt::format("{:.6g}", value); };
    const double cv = line.mean != 0 ? line.stddev / std::abs(line.mean) : 0;
    Line("{:>8} {:>14} {:>14} {:>14} {:>5.1f}% {:>5.0f}% {:>6}  {} [{}], {}", line.launches,
         number(line.mean), number(line.min), number(line.max), 100 * cv, 100 * line.share_rank,
         line.correlation_within_shape.has_value() ? fmt::format("{:.2f}", *line.correlation_within_shape)
                                                   : "–",
         shown_(line.metric), line.unit, shown_(line.name));
  }

  void Ranks() {
    if (report_.ranks.empty()) return;
    Line("\nRanks\n{:>5} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}", "rank",
         "device", "span", "busy", "compute", "comm", "exposed", "transfers", "latency p50", "delay p50",
         "queue");
    for (size_t i = 0; i < std::min(report_.ranks.size(), kLinesShown); ++i) {
      const RankLine& rank = report_.ranks[i];
      Line("{:>5} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>8}", rank.rank,
           rank.device, Time(rank.span_ns), Time(rank.busy_ns), Time(rank.compute_ns), Time(rank.comm_ns),
           Time(rank.exposed_comm_ns), Time(rank.transfer_ns), Time(rank.launch_latency.p50_ns),
           Time(rank.queue_delay.p50_ns), rank.queue_max);
    }
    if (report_.ranks.size() > kLinesShown) Line("… and {} more", report_.ranks.size() - kLinesShown);
  }

  // Of the ranks that have most of it; of the first, its busiest streams and those that share most time.
  void Concurrency() {
    constexpr size_t kShown = 5;
    const std::vector<const ConcurrencyLine*> ranks = RanksByConcurrency(report_);
    if (ranks.empty()) return;
    Line("\nGPU events at the same time, of busy time\n{:>5} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9} {:>6}",
         "rank", "streams", "busy", "1", "2", "3", "4 or more", "mean");
    for (const ConcurrencyLine* const rank : std::span(ranks).first(std::min(ranks.size(), kShown)))
      Line("{:>5} {:>8} {:>12} {:>9} {:>9} {:>9} {:>9} {:>6.2f}", rank->rank, StreamCount(*rank),
           Time(rank->busy_ns()), Percent(rank->running_ns[0], rank->busy_ns()),
           Percent(rank->running_ns[1], rank->busy_ns()), Percent(rank->running_ns[2], rank->busy_ns()),
           Percent(rank->running_ns[3], rank->busy_ns()), rank->mean);
    if (ranks.size() > kShown) Line("… and {} more", ranks.size() - kShown);
    const ConcurrencyLine& most = *ranks[0];
    Line("\nStreams of rank {}\n{:>7} {:>9} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}", most.rank, "stream",
         "events", "busy", "idle", "host", "back to back", "device", "unknown");
    for (const auto& stream : std::span(most.streams).first(std::min(most.streams.size(), kShown)))
      Line("{:>7} {:>9} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}", StreamText(stream.stream), stream.events,
           Time(stream.busy_ns), Time(stream.gaps.sum_ns()), Time(stream.gaps.host_ns),
           Time(stream.gaps.back_to_back_ns), Time(stream.gaps.device_ns), Time(stream.gaps.unknown_ns));
    if (most.streams.size() > kShown) Line("… and {} more", most.streams.size() - kShown);
    constexpr size_t kPairs = 3;
    for (const auto& pair : std::span(most.pairs).first(std::min(most.pairs.size(), kPairs)))
      Line("{} had work at the same time for {}, {} of busy time.", Capitalized(PairText(pair)),
           Time(pair.shared_ns), Percent(pair.shared_ns, most.busy_ns()));
    Kinds(most);
  }
  void Kinds(const ConcurrencyLine& line) {
    const KindMatrix matrix = KindMatrixOf(line);
    if (matrix.kinds.empty()) return;
    out_ +=
        fmt::format("\nKinds of work of rank {} at the same time\n{:>13} {:>12}", line.rank, "kind", "busy");
    for (const auto& column : matrix.kinds) out_ += fmt::format(" {:>13}", column.kind);
    Line("");
    for (size_t i = 0; i < matrix.kinds.size(); ++i) {
      out_ += fmt::format("{:>13} {:>12}", matrix.kinds[i].kind, Time(matrix.kinds[i].busy_ns));
      for (const int64_t ns : matrix.shared_ns[i]) out_ += fmt::format(" {:>13}", ns == 0 ? "–" : Time(ns));
      Line("");
    }
  }

  // Of the threads that launch most.
  void LaunchPatterns() {
    const std::vector<ThreadOfRank> threads = ThreadsByLaunches(report_);
    if (threads.empty()) return;
    constexpr size_t kShown = 5;
    Line(
        "\nLaunches of kernels and graphs, by thread\n{:>5} {:>10} {:>9} {:>10} {:>11} {:>11} {:>8} {:>9} "
        "{:>11} "
        "{:>11} {:>8} {:>11} {:>8}",
        "rank", "thread", "launches", "per second", "gap p50", "gap p99", "bursts", "mean size", "apart",
        "pause p50", "drained", "GPU behind", "waiting");
    for (const auto& [rank, thread] : std::span(threads).first(std::min(threads.size(), kShown)))
      Line("{:>5} {:>10} {:>9} {:>10} {:>11} {:>11} {:>8} {:>9} {:>11} {:>11} {:>8} {:>11} {:>8.1f}", rank,
           thread->thread, thread->launches, PerSecond(*thread),
           GapText(thread->launches - 1, thread->gap_p50_ns),
           GapText(thread->launches - 1, thread->gap_p99_ns), thread->bursts, BurstSize(*thread),
           GapText(thread->bursts, thread->burst_gap_p50_ns), GapText(thread->pauses, thread->pause_p50_ns),
           Percent(thread->drained_pauses, thread->pauses), Time(thread->behind_p50_ns),
           thread->waiting_mean);
    if (threads.size() > kShown) Line("… and {} more", threads.size() - kShown);
    if (const int64_t others = LaunchesOfOthers(report_); others > 0)
      Line("Further threads: {}.", Counted(others, "launch"));
  }

  // Of each rank, and what its device does in typical ones.
  void Steps() {
    if (report_.steps.empty()) return;
    Line("\nSteps\n{:>5} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  ranges", "rank", "count",
         "p50", "p90", "max", "compute", "exposed", "copies", "idle");
    for (size_t i = 0; i < std::min(report_.steps.size(), kLinesShown); ++i) {
      const StepsLine& steps = report_.steps[i];
      const StepParts& typical = steps.typical;
      Line("{:>5} {:>7} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}  {}", steps.rank,
           steps.durations.count, Time(steps.durations.p50_ns), Time(steps.durations.p90_ns),
           Time(steps.durations.max_ns), Time(typical.compute_ns), Time(typical.exposed_comm_ns),
           Time(typical.other_ns), Time(typical.idle_ns), Printable(steps.label));
    }
    if (report_.steps.size() > kLinesShown) Line("… and {} more", report_.steps.size() - kLinesShown);
  }

  // Of typical and slow steps, and the largest parts of typical ones.
  void CriticalPaths() {
    if (report_.critical_paths.empty()) return;
    out_ += fmt::format("\nCritical paths of steps\n{:>5} {:>7} {:>8} {:>12}", "rank", "step", "", "took");
    for (const std::string_view column : kPathColumns) out_ += fmt::format(" {:>13}", column);
    Line("");
    size_t shown = 0;
    for (const CriticalPathLine& path : report_.critical_paths) {
      if (shown++ == kLinesShown) break;
      out_ += fmt::format("{:>5} {:>7} {:>8} {:>12}", path.rank, path.number, path.slow ? "slow" : "typical",
                          Time(path.end_ns - path.begin_ns));
      for (const int64_t ns : PathColumnsOf(path)) out_ += fmt::format(" {:>13}", Time(ns));
      Line("");
    }
    if (report_.critical_paths.size() > kLinesShown)
      Line("… and {} more", report_.critical_paths.size() - kLinesShown);
    const CriticalPathLine& first = report_.critical_paths.front();
    Line(
        "\nLargest parts of the path of step {} of rank {}: at most what it would save without them\n{:>12} "
        "{:>8} "
        "{:>9}  part",
        first.number, first.rank, "time", "share", "times");
    for (size_t i = 0; i < std::min(first.parts.size(), kLinesShown / 2); ++i)
      Line("{:>12} {:>8} {:>9}  {}", Time(first.parts[i].total_ns),
           Percent(first.parts[i].total_ns, first.end_ns - first.begin_ns), first.parts[i].count,
           PathPartText(first.parts[i], shown_));
  }

  void Durations(std::string_view title, const std::vector<DurationLine>& lines) {
    if (lines.empty()) return;
    int64_t whole = 0;
    for (const DurationLine& line : lines) whole += line.total_ns;
    Line("\n{}\n{:>12} {:>8} {:>9} {:>11} {:>11} {:>11} {:>11} {:>8}  name", title, "total", "share", "count",
         "mean", "p50", "p99", "max", "outliers");
    for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
      const DurationLine& line = lines[i];
      Line("{:>12} {:>8} {:>9} {:>11} {:>11} {:>11} {:>11} {:>8}  {}", Time(line.total_ns),
           Percent(line.total_ns, whole), line.count, Time(line.mean_ns), Time(line.p50_ns),
           Time(line.p99_ns), Time(line.max_ns), line.outliers, shown_(line.name));
    }
    if (lines.size() > kLinesShown) Line("… and {} more", lines.size() - kLinesShown);
  }

  // What waiting for the GPU costs each rank's process, and which calls and threads wait most.
  void Syncs() {
    if (report_.syncs.empty()) return;
    Line("\nCalls that wait for the GPU\n{:>5} {:>9} {:>12} {:>12} {:>12} {:>14} {:>14}  longest in total",
         "rank", "count", "total", "GPU busy", "GPU idle", "typical step", "of it idle");
    for (size_t i = 0; i < std::min(report_.syncs.size(), kLinesShown); ++i) {
      const SyncsLine& line = report_.syncs[i];
      Line("{:>5} {:>9} {:>12} {:>12} {:>12} {:>14} {:>14}  {}", line.rank, line.all.count,
           Time(line.all.total_ns), Time(line.all.busy_ns), Time(line.all.idle_ns()),
           line.typical_step.has_value() ? Time(line.typical_step->total_ns) : "–",
           line.typical_step.has_value() ? Time(line.typical_step->idle_ns()) : "–",
           line.calls.empty() ? "" : Printable(line.calls.front().name));
    }
    if (report_.syncs.size() > kLinesShown) Line("… and {} more", report_.syncs.size() - kLinesShown);
    const SyncsLine& most =
        *std::ranges::max_element(report_.syncs, {}, [](const SyncsLine& line) { return line.all.total_ns; });
    Line("\nThose of rank {}, by call and by thread\n{:>9} {:>12} {:>12} {:>12}", most.rank, "count", "total",
         "GPU busy", "GPU idle");
    const auto row = [this](const SyncsLine::Sum& sum, const std::string& what) {
      Line("{:>9} {:>12} {:>12} {:>12}  {}", sum.count, Time(sum.total_ns), Time(sum.busy_ns),
           Time(sum.idle_ns()), what);
    };
    constexpr size_t kShown = kLinesShown / 2;
    for (size_t i = 0; i < std::min(most.calls.size(), kShown); ++i)
      row(most.calls[i].sum, Printable(most.calls[i].name));
    for (size_t i = 0; i < std::min(most.threads.size(), kShown); ++i)
      row(most.threads[i].sum, fmt::format("thread {}", most.threads[i].thread));
  }

  // GPU time by what launched it.
  void Operators(std::string_view title, std::string_view kind) {
    std::vector<const OperatorLine*> lines;
    for (const OperatorLine& line : report_.operators)
      if (line.kind == kind) lines.push_back(&line);
    if (lines.empty()) return;
    const int64_t whole = GpuTime(report_);
    Line(
        "\n{} by the GPU time of what they launched\n{:>12} {:>8} {:>12} {:>9} {:>9} {:>12}  name: its "
        "largest kernel",
        title, "total", "share", "self", "calls", "launches", "host time");
    for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
      const OperatorLine& line = *lines[i];
      Line("{:>12} {:>8} {:>12} {:>9} {:>9} {:>12}  {}: {}", Time(line.total_ns),
           Percent(line.total_ns, whole), Time(line.self_ns), line.calls, line.launches, Time(line.host_ns),
           shown_(line.name), KernelsText(line, shown_, 1));
    }
    if (lines.size() > kLinesShown) Line("… and {} more", lines.size() - kLinesShown);
  }

  // What kernels lose in last waves, of the rank that loses most.
  void Waves() {
    if (report_.waves.empty()) return;
    const WavesLine& worst = *std::ranges::max_element(report_.waves, {}, &WavesLine::lost_ns);
    Line(
        "\nLast waves of blocks (rank {}): at most {} of {} of kernel time are lost; {} of kernels whose "
        "waves are "
        "not known",
        worst.rank, Time(worst.lost_ns), Time(worst.known_ns), Time(worst.unknown_ns));
    if (worst.kernels.empty()) return;
    Line("{:>12} {:>12} {:>9}  name", "lost", "total", "count");
    for (size_t i = 0; i < std::min(worst.kernels.size(), kLinesShown / 2); ++i) {
      const WavesLine::Kernel& kernel = worst.kernels[i];
      Line("{:>12} {:>12} {:>9}  {}", Time(kernel.lost_ns), Time(kernel.total_ns), kernel.count,
           shown_(kernel.name));
    }
  }

  // Of the rank whose take most time.
  void Sequences() {
    if (report_.sequences.empty()) return;
    const auto time = [](const SequencesLine& line) {
      return AddSaturated(line.sequences.front().kernel_ns, line.sequences.front().gap_ns);
    };
    const SequencesLine& line = *std::ranges::max_element(report_.sequences, {}, time);
    Line("\nSequences of kernels that repeat (rank {})\n{:>12} {:>12} {:>9}  kernels, in their order",
         line.rank, "kernels", "gaps", "count");
    for (size_t i = 0; i < std::min(line.sequences.size(), kLinesShown / 2); ++i) {
      const SequencesLine::Sequence& sequence = line.sequences[i];
      Line("{:>12} {:>12} {:>9}  {}", Time(sequence.kernel_ns), Time(sequence.gap_ns), sequence.count,
           shown_(sequence.kernels.front()));
      for (const std::string& kernel : std::span(sequence.kernels).subspan(1))
        Line("{:>35}  {}", "", shown_(kernel));
    }
  }

  // Which kernels count as communication.
  void Communication() {
    if (report_.communication.empty()) return;
    Line("\nCommunication kernels\n{:>12} {:>9}  library, name", "total", "count");
    const size_t shown = std::min(report_.communication.size(), kLinesShown);
    for (size_t i = 0; i < shown; ++i) {
      const CommunicationLine& line = report_.communication[i];
      Line("{:>12} {:>9}  {}, {}", Time(line.total_ns), line.count, line.library, shown_(line.name));
    }
    if (report_.communication.size() > shown) Line("… and {} more", report_.communication.size() - shown);
  }

  // How fast groups of ranks moved messages.
  void Bandwidth() {
    if (report_.bandwidth.empty()) return;
    Line(
        "\nBandwidth of collectives, as nccl-tests defines it (*: not all ranks are there, so waits for "
        "others are in it)\n{:>12} {:>9} {:>12} {:>12} {:>12} {:>12}  operation, group",
        "message", "count", "total", "skew", "algorithm", "bus");
    const size_t shown = std::min(report_.bandwidth.size(), kLinesShown);
    for (const BandwidthLine& line : std::span(report_.bandwidth).first(shown))
      Line("{:>12} {:>9} {:>12} {:>12} {:>12} {:>12}  {}{}, {}", Bytes(line.max_bytes), line.count,
           Time(line.total_ns), line.skew_removed ? Time(line.skew_ns) : "–",
           Rate(line.algorithm_bytes_per_s), Rate(line.bus_bytes_per_s), line.operation,
           line.skew_removed ? "" : "*", line.group.empty() ? "unknown group" : Printable(line.group));
    if (report_.bandwidth.size() > shown) Line("… and {} more", report_.bandwidth.size() - shown);
  }

  void Transfers(std::string_view title, const std::vector<TransferLine>& lines) {
    if (lines.empty()) return;
    Line("\n{}\n{:>12} {:>9} {:>14} {:>11} {:>11} {:>11}  kind", title, "total", "count", "bytes", "p50",
         "max", "GB/s");
    for (const TransferLine& line : lines) {
      const DurationLine& times = line.durations;
      const double rate =
          times.total_ns > 0 ? static_cast<double>(line.bytes) / static_cast<double>(times.total_ns) : 0;
      Line("{:>12} {:>9} {:>14} {:>11} {:>11} {:>11.2f}  {} {} -> {}", Time(times.total_ns), times.count,
           line.bytes, Time(times.p50_ns), Time(times.max_ns), rate, line.kind, line.source, line.target);
    }
  }

  const Report& report_;
  model::ShortNames shown_;
  std::string out_;
};

}  // namespace

std::string ToText(const Report& report) { return TextWriter(report).Write(); }

}  // namespace gpusonde::analyze
