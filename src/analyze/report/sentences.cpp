// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include "analyze/name_table.h"
#include "analyze/report/concurrency.h"
#include "analyze/report/critical_paths.h"
#include "analyze/report/launch_patterns.h"
#include "analyze/report/quantities.h"
#include "analyze/report/steps.h"
#include "base/counted.h"
#include "base/int128.h"
#include "base/printable.h"
#include "base/time.h"
#include "importers/trace.h"

namespace gpusonde::analyze {
namespace {

// Up to this many ranks have a sentence each; more ranks share one, so that it doesn't push the findings
// away.
constexpr size_t kRanksTold = 4;

class SentenceWriter {
 public:
  SentenceWriter(const Report& report, const model::ShortNames& shown) : report_(report), shown_(shown) {}

  ReportSentences Write() {
    std::vector<std::string>& overview = sentences_.overview;
    std::vector<Finding>& found = sentences_.findings;
    if (report_.ranks.size() <= kRanksTold)
      for (const RankLine& rank : report_.ranks) Sentence(rank, overview);
    else
      AllRanks(overview);
    if (std::optional<std::string> several = ConcurrencySentence(report_); several.has_value())
      overview.push_back(*std::move(several));
    if (std::optional<std::string> launches = LaunchPatternSentence(report_); launches.has_value())
      overview.push_back(*std::move(launches));
    LargestKernel(overview);
    if (std::optional<std::string> steps = StepsSentence(report_); steps.has_value())
      overview.push_back(*std::move(steps));
    if (std::optional<std::string> path = CriticalPathSentence(report_, shown_); path.has_value())
      overview.push_back(*std::move(path));
    AlignedClocks(overview);
    if (std::optional<Finding> step = SlowestStep(report_, shown_); step.has_value())
      found.push_back(*std::move(step));
    for (const SlowRankLine& rank : report_.slow_ranks)
      found.push_back(
          {fmt::format(
               "Rank {} is slow: its kernels take {} longer than the same kernels on other ranks ({} to {}, "
               "{} kernels){}.",
               rank.rank, More(rank.ratio), More(rank.low), More(rank.high), rank.kernels,
               rank.mostly.name.empty() ? ""
                                        : fmt::format("; it is mostly {}, which takes {} longer",
                                                      shown_(rank.mostly.name), More(rank.mostly.ratio))),
           CostOf(rank)});
    for (const CollectiveLine& line : report_.collectives)
      if (line.straggler)
        found.push_back({fmt::format("Rank {} is last in {} of {} collectives and delayed the others by {}.",
                                     line.rank, line.last, line.matched, Time(line.delayed_ns)),
                         line.delayed_ns});
    for (const WindowLine& line : report_.windows)
      found.push_back(
          {fmt::format("From {} to {} rank {}'s kernels took {} longer than at other times ({} kernels).",
                       Time(line.begin_ns), Time(line.end_ns), line.rank, More(line.ratio), line.kernels),
           Excess(line.kernel_ns, line.ratio)});
    for (const CopyEffectLine& line : report_.copy_effects)
      if (line.any_copy)
        found.push_back(
            {fmt::format("{} copies, {} takes {} longer ({} to {}, {} kernels, {} in total): an association, "
                         "not necessarily caused by the copies.",
                         line.after ? "Right after" : "Beside", shown_(line.name), More(line.ratio),
                         More(line.low), More(line.high), line.count, Time(line.excess_ns)),
             line.excess_ns});
    const auto varies = std::ranges::find(report_.variability, false, &VariabilityLine::communication);
    if (varies != report_.variability.end() && IsNotable(*varies))
      found.push_back(
          {fmt::format(
               "The kernel that loses most time to variation is {}: {} beyond its typical time, {} outliers "
               "of {}{}.",
               shown_(varies->name), Time(varies->excess_ns), varies->outliers, varies->count,
               Explained(varies->explained)),
           varies->excess_ns});
    for (const KernelMetricLine* line : NotableMetrics())
      found.push_back(
          {fmt::format("Launches of {} that take longer have {} {} (r = {:.2f} among launches of one "
                       "shape, {} launches): an association.",
                       shown_(line->name), *line->correlation_within_shape > 0 ? "more" : "less",
                       shown_(line->metric), *line->correlation_within_shape, line->launches),
           0});
    std::ranges::stable_sort(found, std::greater<>(), &Finding::cost_ns);
    return std::move(sentences_);
  }

 private:
  // Excess of a thousandth of all kernels' time, in a kernel that ran more than a few times.
  bool IsNotable(const VariabilityLine& line) const {
    constexpr int64_t kMinCount = 8;
    Int128 kernel_ns = 0;
    for (const TraceLine& trace : report_.traces) kernel_ns += trace.kernel_ns;
    return line.count >= kMinCount && line.excess_ns > 0 && Int128{line.excess_ns} * 1000 >= kernel_ns;
  }

  // What kernels took beyond a ratio of 1.
  static int64_t Excess(int64_t taken_ns, double ratio) {
    return std::llround(static_cast<double>(taken_ns) * (1 - 1 / ratio));
  }
  int64_t CostOf(const SlowRankLine& slow) const {
    int64_t kernel_ns = 0;
    for (const RankLine& rank : report_.ranks)
      if (rank.rank == slow.rank) kernel_ns += rank.compute_ns;
    return Excess(kernel_ns, slow.ratio);
  }

  static std::string More(double ratio) { return fmt::format("{:.0f} %", (ratio - 1) * 100); }

  static std::string Explained(const VarianceShares& shares) {
    const std::pair<double, std::string_view> all[] = {{shares.shape, "launch shape"},
                                                       {shares.rank, "rank"},
                                                       {shares.time, "time"},
                                                       {shares.stream, "stream"}};
    const auto& [share, what] = *std::ranges::max_element(all, {}, [](const auto& one) { return one.first; });
    return share < 0.2 ? "" : fmt::format("; {} explains {:.0f} % of its variance", what, 100 * share);
  }

  // By how much clocks were shifted.
  void AlignedClocks(std::vector<std::string>& found) const {
    if (report_.alignment != Alignment::kCollectives || report_.collectives.empty()) return;
    const auto& worst = *std::ranges::max_element(
        report_.collectives, {}, [](const CollectiveLine& line) { return std::abs(line.clock_offset_ns); });
    found.push_back(fmt::format(
        "Clocks are aligned by {} collectives; rank {}'s was shifted most, by {} (it then ends them {} off, "
        "the median).",
        worst.matched, worst.rank, Time(std::abs(worst.clock_offset_ns)), Time(worst.clock_residual_ns)));
  }

  // Metrics that are a launch's duration under another name.
  static bool IsTime(const KernelMetricLine& line) {
    return line.unit == "ns" || line.unit.starts_with("cycle") ||
           line.metric.find("cycles") != std::string::npos;
  }
  // For the kernels with most time, the metric that correlates best with a launch's duration.
  std::vector<const KernelMetricLine*> NotableMetrics() const {
    constexpr size_t kKernels = 3;
    constexpr double kStrong = 0.7;
    constexpr int64_t kMinLaunches = 8;
    std::vector<const KernelMetricLine*> telling;
    for (auto it = report_.kernel_metrics.begin(); it != report_.kernel_metrics.end();) {
      const KernelMetricLine* best = nullptr;
      const std::string& name = it->name;
      for (; it != report_.kernel_metrics.end() && it->name == name; ++it)
        if (!IsTime(*it) && it->launches >= kMinLaunches && Strength(*it) >= kStrong &&
            (best == nullptr || Strength(*it) > Strength(*best)))
          best = &*it;
      if (best != nullptr && telling.size() < kKernels) telling.push_back(best);
    }
    return telling;
  }

  // The kernel with the most time, if that is a large share.
  void LargestKernel(std::vector<std::string>& found) const {
    constexpr Int128 kTenth = 10;
    Int128 kernel_ns = 0;
    for (const TraceLine& trace : report_.traces) kernel_ns += trace.kernel_ns;
    if (report_.kernels.size() < 2 || report_.kernels[0].total_ns * kTenth < kernel_ns) return;
    const DurationLine& largest = report_.kernels[0];
    // One of those may be larger than all others, or none.
    if (largest.name == NameTable::kOther) return;
    found.push_back(fmt::format("The kernel with the most time, {:.1f} % of kernel time, is {}: {} in {}.",
                                100 * static_cast<double>(largest.total_ns) / static_cast<double>(kernel_ns),
                                shown_(largest.name), Time(largest.total_ns), Counted(largest.count, "run")));
  }

  // One sentence for many ranks: the range of their utilisation, and why they were idle.
  void AllRanks(std::vector<std::string>& found) const {
    const auto busy = [](const RankLine& rank) {
      return rank.span_ns > 0 ? static_cast<double>(rank.busy_ns) / static_cast<double>(rank.span_ns) : 0;
    };
    const auto [least, most] = std::ranges::minmax_element(report_.ranks, {}, busy);
    Int128 idle_ns = 0, host_ns = 0, comm_ns = 0, exposed_ns = 0;
    for (const RankLine& rank : report_.ranks) {
      idle_ns += rank.idle_ns;
      host_ns += rank.idle.host_ns;
      comm_ns += rank.comm_ns;
      exposed_ns += rank.exposed_comm_ns;
    }
    const auto share = [](Int128 part, Int128 whole) {
      return whole > 0 ? 100 * static_cast<double>(part) / static_cast<double>(whole) : 0;
    };
    std::string text = fmt::format(
        "{} ranks were busy from {:.1f} % (rank {}) to {:.1f} % (rank {}) of their time; of their "
        "idle time, "
        "{:.1f} % because the host had launched nothing",
        report_.ranks.size(), 100 * busy(*least), least->rank, 100 * busy(*most), most->rank,
        share(host_ns, idle_ns));
    if (comm_ns > 0)
      text += fmt::format("; {:.1f} % of their communication had no concurrent computation",
                          share(exposed_ns, comm_ns));
    found.push_back(text + ".");
  }

  // Of idle time that ended with work whose launch the trace doesn't have. gpusonde records the stacks of a
  // sample of the launches only, but samples what the CPU does all the time.
  std::string_view UnknownCause(const RankLine& rank) const {
    if (report_.traces[rank.trace].format == importers::Name(importers::TraceFormat::kSonde))
      return "before work of whose launch there is no sample; `gpusonde diagnose` and `gpusonde view` show "
             "what the CPU did meanwhile";
    return "for unknown reasons (the trace has no launches of the work that followed)";
  }

  // How busy a rank was, and why it was idle.
  void Sentence(const RankLine& rank, std::vector<std::string>& found) const {
    const std::pair<int64_t, std::string_view> causes[] = {
        {rank.idle.host_ns, "because the host had launched nothing"},
        {rank.idle.device_ns, "though work was queued (waiting for other streams or events)"},
        {rank.idle.back_to_back_ns, "in short gaps between one kernel and the next"},
        {rank.idle.unknown_ns, UnknownCause(rank)}};
    const auto& [most_ns, cause] =
        *std::ranges::max_element(causes, {}, [](const auto& one) { return one.first; });
    std::string text = fmt::format("Rank {} (device {}) was busy {} of {}", rank.rank, rank.device,
                                   Percent(rank.busy_ns, rank.span_ns), Time(rank.span_ns));
    if (rank.left_out_ns > 0)
      text += fmt::format(" (without {} for which the trace has no event)", Time(rank.left_out_ns));
    if (rank.only_transfer_ns() > rank.span_ns / 10)
      text += fmt::format(", {} of it with copies and sets alone",
                          Percent(rank.only_transfer_ns(), rank.busy_ns));
    if (rank.graph_ns > 0)
      text += fmt::format(", {} of it inside CUDA graphs", Percent(rank.graph_ns, rank.busy_ns));
    if (most_ns > 0)
      text +=
          fmt::format("; idle {}, {} of that {}", Time(rank.idle_ns), Percent(most_ns, rank.idle_ns), cause);
    if (rank.comm_ns > 0)
      text += fmt::format("; {} of communication, {} of it without concurrent computation",
                          Time(rank.comm_ns), Percent(rank.exposed_comm_ns, rank.comm_ns));
    found.push_back(text + ".");
  }

  const Report& report_;
  const model::ShortNames& shown_;
  ReportSentences sentences_;
};

// "from 2026-11-29 10:19:39.123456 to 10:19:40.000001 UTC"; the second one has a date if it differs.
std::string FromToUtc(int64_t begin_ns, int64_t end_ns) {
  constexpr size_t kDate = std::string_view("2026-11-29 ").size();
  const auto text = [](int64_t ns) {
    const int64_t rest_ns = (ns % kNanosPerSecond + kNanosPerSecond) % kNanosPerSecond;
    return fmt::format("{}.{:06}", FormatUtcSecond(ns), rest_ns / kNanosPerMicro);
  };
  const std::string begin = text(begin_ns), end = text(end_ns);
  const bool same_day = begin.substr(0, kDate) == end.substr(0, kDate);
  return fmt::format("from {} to {} UTC", begin, same_day ? end.substr(kDate) : end);
}

}  // namespace

std::string FromTo(const TraceLine& trace, int64_t begin_ns, int64_t end_ns) {
  if (trace.format == importers::Name(importers::TraceFormat::kSonde)) return FromToUtc(begin_ns, end_ns);
  const bool is_kineto = trace.format == importers::Name(importers::TraceFormat::kKinetoJson);
  const auto text = [&](int64_t ns) {
    const uint64_t size = ns < 0 ? -static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
    const std::string_view sign = ns < 0 ? "-" : "";
    if (!is_kineto) return fmt::format("{}{}", sign, size);
    return size % 1000 == 0 ? fmt::format("{}{}", sign, size / 1000)
                            : fmt::format("{}{}.{:03}", sign, size / 1000, size % 1000);
  };
  return fmt::format("from {} to {} {}", text(begin_ns), text(end_ns), is_kineto ? "µs" : "ns");
}

std::string PlaceText(const AdviceLine::Place& place, const Report& report) {
  const TraceLine& trace = report.traces[place.trace];
  const std::string_view file = std::string_view(trace.path).substr(trace.path.rfind('/') + 1);
  return fmt::format("{} {} ({})", Printable(file), FromTo(trace, place.begin_ns, place.end_ns),
                     Time(place.end_ns - place.begin_ns));
}

AdviceSentences SentencesOf(const AdviceLine& advice, const Report& report, const model::ShortNames& shown) {
  AdviceSentences text;
  std::string ranks = "all ranks";
  if (advice.rank.has_value()) {
    ranks = fmt::format("rank {}", *advice.rank);
    if (advice.ranks > 1) ranks += fmt::format(", the worst of {}", Counted(advice.ranks, "such rank"));
  }
  text.finding = fmt::format("{} ({}): {}. {}", advice.rule, ranks, advice.finding, advice.action);
  if (advice.gain_ns == 0)
    text.gain = fmt::format("none: {}", advice.gain_basis);
  else
    text.gain = fmt::format("at most {}, {} of the span: {}", Time(advice.gain_ns),
                            Percent(advice.gain_ns, advice.span_ns), advice.gain_basis);
  for (const std::string& name : advice.names)
    text.evidence += (text.evidence.empty() ? "" : "; ") + shown(name);
  for (const AdviceLine::Place& place : advice.places)
    text.evidence += (text.evidence.empty() ? "" : "; ") + PlaceText(place, report);
  return text;
}

double Strength(const KernelMetricLine& line) { return std::abs(line.correlation_within_shape.value_or(0)); }

ReportSentences SentencesOf(const Report& report, const model::ShortNames& shown) {
  return SentenceWriter(report, shown).Write();
}

std::vector<std::string_view> NamesIn(const Report& report) {
  std::vector<std::string_view> names;
  for (const auto* lines : {&report.kernels, &report.api_calls})
    for (const DurationLine& line : *lines) names.push_back(line.name);
  return names;
}

}  // namespace gpusonde::analyze
