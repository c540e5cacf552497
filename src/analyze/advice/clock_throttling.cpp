// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "model/metric_catalogue.h"

namespace gpusonde::analyze {
namespace {

double ShareOf(int64_t part_ns, int64_t all_ns) {
  return all_ns > 0 ? static_cast<double>(part_ns) / static_cast<double>(all_ns) : 0;
}

}  // namespace

const ClockLine* ClockOf(const Report& report, const RankLine& rank) {
  const auto found = std::ranges::find_if(report.clocks, [&](const ClockLine& line) {
    return line.rank == rank.rank && line.trace == rank.trace;
  });
  return found != report.clocks.end() ? &*found : nullptr;
}

bool IsThrottled(const ClockLine& clock, int64_t span_ns) {
  const double in_slow = ShareOf(clock.slow_low_ns, clock.slow_ns);
  const double in_others = ShareOf(clock.other_low_ns, span_ns - clock.slow_ns);
  return in_slow >= thresholds::kLowClock && in_slow >= thresholds::kLowClockOftener * in_others;
}

// Slow steps or periods in which the clock was lower than in the others.
std::optional<AdviceLine> AdviseClockThrottling(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kSlowness, [&](const RankLine& rank) {
    const ClockLine* const clock = ClockOf(report, rank);
    return clock != nullptr && IsThrottled(*clock, rank.span_ns) ? clock->lost_ns : 0;
  });
  if (worst.rank == nullptr) return std::nullopt;
  const ClockLine& clock = *ClockOf(report, *worst.rank);
  AdviceLine advice = AdviceFor(worst, "clock_throttling");
  advice.finding = fmt::format(
      "in {} of the device's time of slow steps and periods ({} of {}) its clock was low, {} MHz where "
      "lowest, while it is {} MHz usually; in the rest it was low for {} of the time",
      Percent(clock.slow_low_ns, clock.slow_ns), Time(clock.slow_low_ns), Time(clock.slow_ns),
      clock.lowest_mhz, clock.usual_mhz, Percent(clock.other_low_ns, worst.rank->span_ns - clock.slow_ns));
  const std::string reasons = model::SlowingReasons(clock.throttle_reasons);
  if (!reasons.empty()) advice.finding += fmt::format("; the driver's reasons: {}", reasons);
  advice.action =
      reasons.empty()
          ? "Find out why the driver lowers the clock (nvidia-smi -q -d PERFORMANCE while it runs): heat, "
            "the power limit, or clocks that were set lower."
          : "Heat: look at fans, air flow and the temperature of the room. Power: compare the limit with "
            "that of the other GPUs (nvidia-smi -q -d POWER), and look for a shared limit of the chassis.";
  advice.gain_basis = "the slow time with a low clock, if kernels run as fast as the clock";
  for (const HostGapsLine::Gap& stretch : clock.longest)
    advice.places.push_back(PlaceAt(*worst.rank, stretch.begin_ns, stretch.end_ns));
  return advice;
}

}  // namespace gpusonde::analyze
