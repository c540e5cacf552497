// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/launch_patterns.h"

#include <fmt/format.h>

#include <algorithm>

#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

LaunchPatternLine::Thread::Pattern LaunchPatternLine::Thread::pattern() const {
  constexpr int64_t kMinLaunches = 100;
  constexpr int64_t kMinBursts = 4;
  if (launches < kMinLaunches) return Pattern::kFew;
  const bool in_bursts =
      bursts >= kMinBursts && burst_launches >= launches - burst_launches && pauses_ns >= span_ns - pauses_ns;
  return in_bursts ? Pattern::kBursts : Pattern::kSteady;
}

double LaunchPatternLine::Thread::mean_burst() const {
  return bursts > 0 ? static_cast<double>(burst_launches) / static_cast<double>(bursts) : 0;
}

std::optional<double> LaunchPatternLine::Thread::launches_per_s() const {
  if (span_ns <= 0) return std::nullopt;
  return 1e9 * static_cast<double>(launches - 1) / static_cast<double>(span_ns);
}

std::vector<ThreadOfRank> ThreadsByLaunches(const Report& report) {
  std::vector<ThreadOfRank> threads;
  for (const LaunchPatternLine& line : report.launch_patterns)
    for (const LaunchPatternLine::Thread& thread : line.threads) threads.push_back({line.rank, &thread});
  std::ranges::stable_sort(threads, {}, [](const ThreadOfRank& one) { return -one.thread->launches; });
  return threads;
}

std::optional<std::string> LaunchPatternSentence(const Report& report) {
  using Pattern = LaunchPatternLine::Thread::Pattern;
  const std::vector<ThreadOfRank> threads = ThreadsByLaunches(report);
  if (threads.empty() || threads[0].thread->pattern() == Pattern::kFew) return std::nullopt;
  const auto& [rank, most] = threads[0];
  std::string text = most->thread == 0 ? fmt::format("Rank {}", rank)
                                       : fmt::format("Thread {} of rank {}", most->thread, rank);
  if (most->pattern() == Pattern::kBursts)
    text += fmt::format(" launches in bursts: {} kernels on average, {} apart, then none for {}",
                        BurstSize(*most), Time(most->burst_gap_p50_ns), Time(most->pause_p50_ns));
  else
    text += fmt::format(" launches steadily, a kernel every {}", Time(most->gap_p50_ns));
  text += fmt::format("; the GPU runs {} behind", Time(most->behind_p50_ns));
  if (most->pattern() == Pattern::kBursts && most->drained_pauses >= most->pauses - most->drained_pauses)
    text += fmt::format(", and has nothing left to start at the end of {} of these pauses",
                        Percent(most->drained_pauses, most->pauses));
  return text + ".";
}

int64_t LaunchesOfOthers(const Report& report) {
  int64_t others = 0;
  for (const LaunchPatternLine& line : report.launch_patterns) others = AddSaturated(others, line.others);
  return others;
}

std::string_view PatternText(LaunchPatternLine::Thread::Pattern pattern) {
  constexpr std::string_view kTexts[] = {"few", "steady", "bursts"};
  return kTexts[static_cast<size_t>(pattern)];
}

std::string PerSecond(const LaunchPatternLine::Thread& thread) {
  const std::optional<double> rate = thread.launches_per_s();
  return rate.has_value() ? fmt::format("{:.0f}", *rate) : "–";
}

std::string GapText(int64_t count, int64_t gap_ns) { return count > 0 ? Time(gap_ns) : "–"; }

std::string BurstSize(const LaunchPatternLine::Thread& thread) {
  return thread.bursts > 0 ? fmt::format("{:.{}f}", thread.mean_burst(), thread.mean_burst() < 10 ? 1 : 0)
                           : "–";
}

}  // namespace gpusonde::analyze
