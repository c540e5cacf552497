// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"
#include "base/int128.h"

namespace gpusonde::analyze {

namespace {

// The window that was idle most and that no long gap touches.
std::optional<AdviceLine::Place> MostIdleWindow(const RankLine& rank) {
  const auto count = static_cast<int64_t>(rank.busy_windows_ns.size());
  std::optional<AdviceLine::Place> most;
  int64_t most_ns = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto edge = [&](int64_t window) {
      return static_cast<int64_t>(Int128{rank.span_ns} * window / count);
    };
    const int64_t begin_ns = edge(i);
    const int64_t end_ns = edge(i + 1);
    const int64_t idle_ns = end_ns - begin_ns - rank.busy_windows_ns[static_cast<size_t>(i)];
    const bool has_stall = std::ranges::any_of(rank.host_gaps.longest, [&](const HostGapsLine::Gap& gap) {
      return gap.begin_ns < end_ns && gap.end_ns > begin_ns;
    });
    if (has_stall || idle_ns <= most_ns) continue;
    most_ns = idle_ns;
    most = PlaceAt(rank, begin_ns, end_ns);
  }
  return most;
}

}  // namespace

// Short gaps in which the host had launched nothing: it launches more slowly than the GPU works.
std::optional<AdviceLine> AdviseLaunchBound(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kLaunchGaps,
                                        [](const RankLine& rank) { return rank.host_gaps.short_ns; });
  if (worst.rank == nullptr) return std::nullopt;
  const HostGapsLine& gaps = worst.rank->host_gaps;
  AdviceLine advice = AdviceFor(worst, "launch_bound");
  advice.finding = fmt::format(
      "the GPU waited for a launch in {} under 1 ms, {} in total, {} each on average; half of its launches "
      "started within {} of the end of their call",
      Counted(gaps.short_count, "gap"), Time(gaps.short_ns),
      Time(gaps.short_ns / std::max<int64_t>(1, gaps.short_count)), Time(worst.rank->queue_delay.p50_ns));
  advice.action = fmt::format(
      "Launch less often or sooner: {}, a compiler that fuses (torch.compile), larger batches, no "
      "synchronisation between launches.",
      LaunchesGraphs(report) ? "larger CUDA graphs than those that it launches" : "CUDA graphs");
  advice.gain_basis = "the idle time in these gaps, if launches were always queued in time";
  advice.names = MostLaunched(report, [](const DurationLine&) { return true; });
  if (const auto place = MostIdleWindow(*worst.rank)) advice.places.push_back(*place);
  return advice;
}

}  // namespace gpusonde::analyze
