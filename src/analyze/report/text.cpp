// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
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
#include "base/display_width.h"
#include "base/printable.h"
#include "base/saturated.h"
#include "base/terminal.h"
#include "base/text_table.h"
#include "importers/trace.h"
#include "model/short_names.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kLinesShown = 20;
constexpr size_t kFindingsShown = 12;

// The narrowest that a name is cut to before columns are left out.
constexpr size_t kMinName = 40;
// An operator's name and that of its largest kernel.
constexpr size_t kMaxWords = 150;

// Four digits, which tell as much as a row has room for: 1234567 ns as "1.235 ms", 12345 as "12.35 µs".
std::string Brief(int64_t ns) {
  const uint64_t size = ns < 0 ? uint64_t{0} - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  if (size < 10'000 || (size < 1'000'000 && size % 1'000 == 0)) return Time(ns);
  constexpr std::array kUnits = {std::pair(1e3, "µs"), std::pair(1e6, "ms"), std::pair(1e9, "s")};
  const auto& [unit, name] = kUnits[size < 1'000'000 ? 0 : size < 1'000'000'000 ? 1 : 2];
  const double value = static_cast<double>(size) / unit;
  return fmt::format("{}{:.{}f} {}", ns < 0 ? "−" : "", value, value < 10 ? 3 : value < 100 ? 2 : 1, name);
}

TextColumn Figures(std::string title, int leave_out = 0) {
  return {.title = std::move(title), .right = true, .leave_out = leave_out};
}
// A last column that is cut where there is no room.
TextColumn Words(std::string title) {
  return {.title = std::move(title), .min_width = kMinName, .max_width = kMaxWords};
}
// Such a column of names of kernels and calls, which are shortened, so that they stay different.
TextColumn Names(std::string title) {
  return {.title = std::move(title), .min_width = kMinName, .max_width = model::ShortNames::kWidth};
}

class Table {
 public:
  explicit Table(std::vector<TextColumn> columns) : columns_(std::move(columns)) {}

  // A cell for each column, text or a whole number.
  template <class... Cells>
  void Row(const Cells&... cells) {
    size_t column = 0;
    (columns_[column++].cells.push_back(fmt::format("{}", cells)), ...);
  }
  std::vector<TextColumn>& columns() { return columns_; }

 private:
  std::vector<TextColumn> columns_;
};

class TextWriter {
 public:
  TextWriter(const Report& report, size_t width) : report_(report), width_(width), shown_(NamesIn(report)) {}

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

  void Print(Table table) {
    for (TextColumn& column : table.columns())
      if (column.max_width == model::ShortNames::kWidth)
        column.draw = [this, names = column.cells](size_t row, size_t width) {
          return ShownIn(width, names[row]);
        };
    for (const std::string& line : LayOutTable(std::move(table.columns()), width_)) Line("{}", line);
  }
  std::string ShownIn(size_t width, std::string_view name) {
    const auto [shown, is_new] = shown_in_.try_emplace(width, NamesIn(report_), width);
    return CutToWidth(shown->second(name), width);
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
      Line("{} ({}): {}{}: {} ({} of kernel time), {} ({}, {}), {}, {}, {}.", Printable(trace.path),
           trace.format, Counted(trace.events, "event"),
           trace.duration_ns > 0 ? fmt::format(" over {}", Time(trace.duration_ns)) : "",
           Counted(trace.kernels, "kernel"), Time(trace.kernel_ns), copies,
           trace.memcpys > 0 && trace.memcpy_bytes == 0 ? "of unknown size" : Bytes(trace.memcpy_bytes),
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
    Line("\nNsight Compute metrics that vary (r: with the duration, among launches of one shape)");
    Table table({Figures("launches"), Figures("mean"), Figures("min", 1), Figures("max", 1), Figures("cv"),
                 Figures("rank", 2), Figures("r"), Words("metric, kernel")});
    size_t shown = 0;
    for (size_t begin = 0; begin < report_.kernel_metrics.size() && shown < kLinesShown;) {
      size_t end = begin;
      std::vector<const KernelMetricLine*> varying;
      const std::string& name = report_.kernel_metrics[begin].name;
      for (; end < report_.kernel_metrics.size() && report_.kernel_metrics[end].name == name; ++end)
        if (report_.kernel_metrics[end].stddev > 0) varying.push_back(&report_.kernel_metrics[end]);
      std::ranges::stable_sort(varying, std::greater<>(), [](const auto* line) { return Strength(*line); });
      for (size_t i = 0; i < std::min(varying.size(), kPerKernel) && shown < kLinesShown; ++i, ++shown)
        MetricRow(*varying[i], table);
      begin = end;
    }
    Print(std::move(table));
    Line("All {} are in the JSON.", report_.kernel_metrics.size());
  }
  void MetricRow(const KernelMetricLine& line, Table& table) {
    const auto number = [&](double value) { return fmt::format("{:.6g}", value); };
    const double cv = line.mean != 0 ? line.stddev / std::abs(line.mean) : 0;
    table.Row(line.launches, number(line.mean), number(line.min), number(line.max),
              fmt::format("{:.1f}%", 100 * cv), fmt::format("{:.0f}%", 100 * line.share_rank),
              line.correlation_within_shape.has_value()
                  ? fmt::format("{:.2f}", *line.correlation_within_shape)
                  : "–",
              fmt::format("{} [{}], {}", shown_(line.metric), line.unit, shown_(line.name)));
  }

  void Ranks() {
    if (report_.ranks.empty()) return;
    Line("\nRanks (latency and delay of launches: medians; queue: the most that waited)");
    Table table({Figures("rank"), Figures("device", 3), Figures("span"), Figures("busy"), Figures("compute"),
                 Figures("comm"), Figures("exposed"), Figures("transfers"), Figures("latency", 1),
                 Figures("delay", 2), Figures("queue", 1)});
    for (size_t i = 0; i < std::min(report_.ranks.size(), kLinesShown); ++i) {
      const RankLine& rank = report_.ranks[i];
      table.Row(rank.rank, rank.device, Brief(rank.span_ns), Brief(rank.busy_ns), Brief(rank.compute_ns),
                Brief(rank.comm_ns), Brief(rank.exposed_comm_ns), Brief(rank.transfer_ns),
                Brief(rank.launch_latency.p50_ns), Brief(rank.queue_delay.p50_ns), rank.queue_max);
    }
    Print(std::move(table));
    if (report_.ranks.size() > kLinesShown) Line("… and {} more", report_.ranks.size() - kLinesShown);
  }

  // Of the ranks that have most of it; of the first, its busiest streams and those that share most time.
  void Concurrency() {
    constexpr size_t kShown = 5;
    const std::vector<const ConcurrencyLine*> ranks = RanksByConcurrency(report_);
    if (ranks.empty()) return;
    Line("\nGPU events at the same time, of busy time");
    Table together({Figures("rank"), Figures("streams"), Figures("busy"), Figures("1"), Figures("2"),
                    Figures("3"), Figures("4 or more"), Figures("mean")});
    for (const ConcurrencyLine* const rank : std::span(ranks).first(std::min(ranks.size(), kShown)))
      together.Row(rank->rank, StreamCount(*rank), Brief(rank->busy_ns()),
                   Percent(rank->running_ns[0], rank->busy_ns()),
                   Percent(rank->running_ns[1], rank->busy_ns()),
                   Percent(rank->running_ns[2], rank->busy_ns()),
                   Percent(rank->running_ns[3], rank->busy_ns()), fmt::format("{:.2f}", rank->mean));
    Print(std::move(together));
    if (ranks.size() > kShown) Line("… and {} more", ranks.size() - kShown);
    const ConcurrencyLine& most = *ranks[0];
    Line("\nStreams of rank {}", most.rank);
    Table streams({Figures("stream"), Figures("events"), Figures("busy"), Figures("idle"), Figures("host"),
                   Figures("back to back"), Figures("device"), Figures("unknown")});
    for (const auto& stream : std::span(most.streams).first(std::min(most.streams.size(), kShown)))
      streams.Row(StreamText(stream.stream), stream.events, Brief(stream.busy_ns),
                  Brief(stream.gaps.sum_ns()), Brief(stream.gaps.host_ns), Brief(stream.gaps.back_to_back_ns),
                  Brief(stream.gaps.device_ns), Brief(stream.gaps.unknown_ns));
    Print(std::move(streams));
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
    Line("\nKinds of work of rank {} at the same time", line.rank);
    std::vector<TextColumn> columns = {Figures("kind"), Figures("busy")};
    for (const auto& column : matrix.kinds) columns.push_back(Figures(std::string(column.kind)));
    for (size_t i = 0; i < matrix.kinds.size(); ++i) {
      columns[0].cells.emplace_back(matrix.kinds[i].kind);
      columns[1].cells.push_back(Brief(matrix.kinds[i].busy_ns));
      for (size_t j = 0; j < matrix.shared_ns[i].size(); ++j)
        columns[2 + j].cells.push_back(matrix.shared_ns[i][j] == 0 ? "–" : Brief(matrix.shared_ns[i][j]));
    }
    Print(Table(std::move(columns)));
  }

  // Of the threads that launch most.
  void LaunchPatterns() {
    const std::vector<ThreadOfRank> threads = ThreadsByLaunches(report_);
    if (threads.empty()) return;
    constexpr size_t kShown = 5;
    Line("\nLaunches of kernels and graphs, by thread");
    Table table({Figures("rank"), Figures("thread"), Figures("launches"), Figures("per second", 1),
                 Figures("gap p50"), Figures("gap p99", 2), Figures("bursts"), Figures("mean size"),
                 Figures("apart", 3), Figures("pause p50"), Figures("drained"), Figures("GPU behind"),
                 Figures("waiting", 4)});
    for (const auto& [rank, thread] : std::span(threads).first(std::min(threads.size(), kShown)))
      table.Row(rank, thread->thread, thread->launches, PerSecond(*thread),
                GapText(thread->launches - 1, thread->gap_p50_ns),
                GapText(thread->launches - 1, thread->gap_p99_ns), thread->bursts, BurstSize(*thread),
                GapText(thread->bursts, thread->burst_gap_p50_ns),
                GapText(thread->pauses, thread->pause_p50_ns),
                Percent(thread->drained_pauses, thread->pauses), Brief(thread->behind_p50_ns),
                fmt::format("{:.1f}", thread->waiting_mean));
    Print(std::move(table));
    if (threads.size() > kShown) Line("… and {} more", threads.size() - kShown);
    if (const int64_t others = LaunchesOfOthers(report_); others > 0)
      Line("Further threads: {}.", Counted(others, "launch"));
  }

  // Of each rank, and what its device does in typical ones.
  void Steps() {
    if (report_.steps.empty()) return;
    Line("\nSteps");
    const bool has_graphs =
        std::ranges::any_of(report_.ranks, [](const RankLine& rank) { return rank.graph_ns > 0; });
    Table table({Figures("rank"),
                 Figures("count"),
                 Figures("p50"),
                 Figures("p90", 1),
                 Figures("max"),
                 Figures("compute"),
                 Figures("exposed"),
                 Figures(has_graphs ? "graphs, copies" : "copies"),
                 Figures("idle"),
                 {.title = "ranges", .min_width = 8, .max_width = kMaxWords}});
    for (size_t i = 0; i < std::min(report_.steps.size(), kLinesShown); ++i) {
      const StepsLine& steps = report_.steps[i];
      const StepParts& typical = steps.typical;
      table.Row(steps.rank, steps.durations.count, Brief(steps.durations.p50_ns),
                Brief(steps.durations.p90_ns), Brief(steps.durations.max_ns), Brief(typical.compute_ns),
                Brief(typical.exposed_comm_ns), Brief(typical.other_ns), Brief(typical.idle_ns),
                Printable(steps.label));
    }
    Print(std::move(table));
    if (report_.steps.size() > kLinesShown) Line("… and {} more", report_.steps.size() - kLinesShown);
  }

  // Of typical and slow steps, and the largest parts of typical ones.
  void CriticalPaths() {
    if (report_.critical_paths.empty()) return;
    Line("\nCritical paths of steps");
    std::vector<TextColumn> columns = {Figures("rank"), Figures("step"), Figures(""), Figures("took")};
    const size_t first_kind = columns.size();
    for (const std::string_view column : kPathColumns) columns.push_back(Figures(std::string(column)));
    std::array<bool, kPathColumns.size()> has_time{};
    for (size_t i = 0; i < std::min(report_.critical_paths.size(), kLinesShown); ++i) {
      const CriticalPathLine& path = report_.critical_paths[i];
      size_t column = 0;
      for (const std::string& cell :
           {fmt::to_string(path.rank), fmt::to_string(path.number),
            std::string(path.slow ? "slow" : "typical"), Brief(path.end_ns - path.begin_ns)})
        columns[column++].cells.push_back(cell);
      for (const int64_t ns : PathColumnsOf(path)) {
        has_time[column - first_kind] |= ns > 0;
        columns[column++].cells.push_back(Brief(ns));
      }
    }
    for (size_t i = has_time.size(); i-- > 0;)
      if (!has_time[i]) columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(first_kind + i));
    Print(Table(std::move(columns)));
    if (report_.critical_paths.size() > kLinesShown)
      Line("… and {} more", report_.critical_paths.size() - kLinesShown);
    const CriticalPathLine& first = report_.critical_paths.front();
    Line("\nLargest parts of the path of step {} of rank {}: at most what it would save without them",
         first.number, first.rank);
    Table parts({Figures("time"), Figures("share"), Figures("times"), Words("part")});
    for (size_t i = 0; i < std::min(first.parts.size(), kLinesShown / 2); ++i)
      parts.Row(Brief(first.parts[i].total_ns),
                Percent(first.parts[i].total_ns, first.end_ns - first.begin_ns), first.parts[i].count,
                PathPartText(first.parts[i], shown_));
    Print(std::move(parts));
  }

  void Durations(std::string_view title, const std::vector<DurationLine>& lines) {
    if (lines.empty()) return;
    int64_t whole = 0;
    for (const DurationLine& line : lines) whole = AddSaturated(whole, line.total_ns);
    Line("\n{}", title);
    Table table({Figures("total"), Figures("share"), Figures("count"), Figures("mean"), Figures("p50"),
                 Figures("p99", 1), Figures("max"), Figures("outliers", 2), Names("name")});
    for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
      const DurationLine& line = lines[i];
      table.Row(Brief(line.total_ns), Percent(line.total_ns, whole), line.count, Brief(line.mean_ns),
                Brief(line.p50_ns), Brief(line.p99_ns), Brief(line.max_ns), line.outliers, line.name);
    }
    Print(std::move(table));
    if (lines.size() > kLinesShown) Line("… and {} more", lines.size() - kLinesShown);
  }

  // What waiting for the GPU costs each rank's process, and which calls and threads wait most.
  void Syncs() {
    if (report_.syncs.empty()) return;
    Line("\nCalls that wait for the GPU");
    Table table({Figures("rank"),
                 Figures("count"),
                 Figures("total"),
                 Figures("GPU busy"),
                 Figures("GPU idle"),
                 Figures("typical step", 1),
                 Figures("of it idle", 1),
                 {.title = "longest in total", .min_width = 20, .max_width = kMaxWords}});
    for (size_t i = 0; i < std::min(report_.syncs.size(), kLinesShown); ++i) {
      const SyncsLine& line = report_.syncs[i];
      table.Row(line.rank, line.all.count, Brief(line.all.total_ns), Brief(line.all.busy_ns),
                Brief(line.all.idle_ns()),
                line.typical_step.has_value() ? Brief(line.typical_step->total_ns) : "–",
                line.typical_step.has_value() ? Brief(line.typical_step->idle_ns()) : "–",
                line.calls.empty() ? "" : Printable(line.calls.front().name));
    }
    Print(std::move(table));
    if (report_.syncs.size() > kLinesShown) Line("… and {} more", report_.syncs.size() - kLinesShown);
    const SyncsLine& most =
        *std::ranges::max_element(report_.syncs, {}, [](const SyncsLine& line) { return line.all.total_ns; });
    Line("\nThose of rank {}, by call and by thread", most.rank);
    Table each({Figures("count"), Figures("total"), Figures("GPU busy"), Figures("GPU idle"), Words("")});
    const auto row = [&each](const SyncsLine::Sum& sum, const std::string& what) {
      each.Row(sum.count, Brief(sum.total_ns), Brief(sum.busy_ns), Brief(sum.idle_ns()), what);
    };
    constexpr size_t kShown = kLinesShown / 2;
    for (size_t i = 0; i < std::min(most.calls.size(), kShown); ++i)
      row(most.calls[i].sum, Printable(most.calls[i].name));
    for (size_t i = 0; i < std::min(most.threads.size(), kShown); ++i)
      row(most.threads[i].sum, fmt::format("thread {}", most.threads[i].thread));
    Print(std::move(each));
  }

  // GPU time by what launched it.
  void Operators(std::string_view title, std::string_view kind) {
    std::vector<const OperatorLine*> lines;
    for (const OperatorLine& line : report_.operators)
      if (line.kind == kind) lines.push_back(&line);
    if (lines.empty()) return;
    const int64_t whole = GpuTime(report_);
    Line("\n{} by the GPU time of what they launched", title);
    Table table({Figures("total"), Figures("share"), Figures("self"), Figures("calls"),
                 Figures("launches", 1), Figures("host time", 2), Words("name: its largest kernel")});
    for (size_t i = 0; i < std::min(lines.size(), kLinesShown); ++i) {
      const OperatorLine& line = *lines[i];
      table.Row(Brief(line.total_ns), Percent(line.total_ns, whole), Brief(line.self_ns), line.calls,
                line.launches, Brief(line.host_ns),
                fmt::format("{}: {}", shown_(line.name), KernelsText(line, shown_, 1)));
    }
    Print(std::move(table));
    if (lines.size() > kLinesShown) Line("… and {} more", lines.size() - kLinesShown);
  }

  // What kernels lose in last waves, of the rank that loses most.
  void Waves() {
    if (report_.waves.empty()) return;
    const WavesLine& worst = *std::ranges::max_element(report_.waves, {}, &WavesLine::lost_ns);
    Line("\n{}",
         Wrap(fmt::format("Last waves of blocks (rank {}): at most {} of {} of kernel time are lost; {} of "
                          "kernels whose waves are not known",
                          worst.rank, Time(worst.lost_ns), Time(worst.known_ns), Time(worst.unknown_ns)),
              width_, 2));
    if (worst.kernels.empty()) return;
    Table table({Figures("lost"), Figures("total"), Figures("count"), Names("name")});
    for (size_t i = 0; i < std::min(worst.kernels.size(), kLinesShown / 2); ++i) {
      const WavesLine::Kernel& kernel = worst.kernels[i];
      table.Row(Brief(kernel.lost_ns), Brief(kernel.total_ns), kernel.count, kernel.name);
    }
    Print(std::move(table));
  }

  // Of the rank whose take most time.
  void Sequences() {
    if (report_.sequences.empty()) return;
    const auto time = [](const SequencesLine& line) {
      return AddSaturated(line.sequences.front().kernel_ns, line.sequences.front().gap_ns);
    };
    const SequencesLine& line = *std::ranges::max_element(report_.sequences, {}, time);
    Line("\nSequences of kernels that repeat (rank {})", line.rank);
    Table table({Figures("kernels"), Figures("gaps"), Figures("count"), Names("kernels, in their order")});
    for (size_t i = 0; i < std::min(line.sequences.size(), kLinesShown / 2); ++i) {
      const SequencesLine::Sequence& sequence = line.sequences[i];
      table.Row(Brief(sequence.kernel_ns), Brief(sequence.gap_ns), sequence.count, sequence.kernels.front());
      for (const std::string& kernel : std::span(sequence.kernels).subspan(1)) table.Row("", "", "", kernel);
    }
    Print(std::move(table));
  }

  // Which kernels count as communication.
  void Communication() {
    if (report_.communication.empty()) return;
    Line("\nCommunication kernels");
    Table table({Figures("total"), Figures("count"), {.title = "library"}, Names("name")});
    const size_t shown = std::min(report_.communication.size(), kLinesShown);
    for (const CommunicationLine& line : std::span(report_.communication).first(shown))
      table.Row(Brief(line.total_ns), line.count, line.library, line.name);
    Print(std::move(table));
    if (report_.communication.size() > shown) Line("… and {} more", report_.communication.size() - shown);
  }

  // How fast groups of ranks moved messages.
  void Bandwidth() {
    if (report_.bandwidth.empty()) return;
    Line("\nBandwidth of collectives (*: not all ranks are there, so waits for others are in it)");
    Table table({Figures("message"), Figures("count"), Figures("total"), Figures("skew", 1),
                 Figures("algorithm"), Figures("bus"), Words("operation, group")});
    const size_t shown = std::min(report_.bandwidth.size(), kLinesShown);
    for (const BandwidthLine& line : std::span(report_.bandwidth).first(shown))
      table.Row(Bytes(line.max_bytes), line.count, Brief(line.total_ns),
                line.skew_removed ? Brief(line.skew_ns) : "–", Rate(line.algorithm_bytes_per_s),
                Rate(line.bus_bytes_per_s),
                fmt::format("{}{}, {}", line.operation, line.skew_removed ? "" : "*",
                            line.group.empty() ? "unknown group" : Printable(line.group)));
    Print(std::move(table));
    if (report_.bandwidth.size() > shown) Line("… and {} more", report_.bandwidth.size() - shown);
  }

  void Transfers(std::string_view title, const std::vector<TransferLine>& lines) {
    if (lines.empty()) return;
    Line("\n{}", title);
    Table table({Figures("total"), Figures("count"), Figures("bytes"), Figures("p50"), Figures("max"),
                 Figures("GB/s"), Words("kind")});
    for (const TransferLine& line : lines) {
      const DurationLine& times = line.durations;
      table.Row(Brief(times.total_ns), times.count, line.bytes > 0 ? fmt::to_string(line.bytes) : "–",
                Brief(times.p50_ns), Brief(times.max_ns), GigabytesPerSecond(line.bytes, times.total_ns),
                fmt::format("{} {} -> {}", line.kind, line.source, line.target));
    }
    Print(std::move(table));
  }

  const Report& report_;
  size_t width_;
  model::ShortNames shown_;
  std::map<size_t, model::ShortNames> shown_in_;  // widths of columns
  std::string out_;
};

}  // namespace

std::string ToText(const Report& report, size_t width) { return TextWriter(report, width).Write(); }

}  // namespace gpusonde::analyze
