// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Stretches of time in which all kinds of kernels are slower than at other times: a lower clock looks like
// this.
std::optional<AdviceLine> AdviseSlowPeriods(const Report& report) {
  const auto cost = [](const WindowLine& line) { return ExcessOf(line.kernel_ns, line.ratio); };
  const auto loss = [&](const RankLine& rank) {
    int64_t loss_ns = 0;
    for (const WindowLine& line : report.windows)
      if (line.rank == rank.rank) loss_ns += cost(line);
    return loss_ns;
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kSlowness, loss);
  if (worst.rank == nullptr) return std::nullopt;
  std::vector<const WindowLine*> windows;
  for (const WindowLine& line : report.windows)
    if (line.rank == worst.rank->rank) windows.push_back(&line);
  std::ranges::stable_sort(windows, std::greater<>(), [&](const WindowLine* line) { return cost(*line); });
  AdviceLine advice = AdviceFor(worst, "slow_periods");
  const double most = std::ranges::max(windows, {}, &WindowLine::ratio)->ratio;
  advice.finding =
      fmt::format("in {} its kernels took longer than the same kernels at other times ({} where most)",
                  Counted(static_cast<int64_t>(windows.size()), "period"), Longer(most));
  const ClockLine* const clock = ClockOf(report, *worst.rank);
  if (clock == nullptr)
    advice.action =
        "A lower clock looks like this; so do another program on the GPU and data that needs more work. "
        "Watch the clocks, power and temperature (nvidia-smi -q -d CLOCK,PERFORMANCE): the report doesn't "
        "have them.";
  else if (IsThrottled(*clock, worst.rank->span_ns))
    advice.action = "The clock was low then, too: see clock_throttling.";
  else
    advice.action =
        "The clock wasn't low for most of that time: look for another program on the GPU, and for data that "
        "needs more work.";
  advice.gain_basis =
      "the time of the kernels in these periods beyond what the same kernels take at other times";
  for (size_t i = 0; i < std::min(windows.size(), kMaxEvidence); ++i)
    advice.places.push_back(PlaceAt(*worst.rank, windows[i]->begin_ns, windows[i]->end_ns));
  return advice;
}

}  // namespace gpusonde::analyze
