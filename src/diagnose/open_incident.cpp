// SPDX-License-Identifier: Apache-2.0
#include "diagnose/open_incident.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <ranges>

#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {

void OpenIncident::Add(const RecentStep& step) {
  time += step.time;
  unknown_steps = 0;
}

void OpenIncident::EndOverrun(const TimedStep& step, bool is_known) {
  overruns = false;
  time = is_known ? ComparedTime{} : ComparedTime{.ns = step.length_ns(), .usual_ns = time.usual_ns};
}

bool OpenIncident::AddUnknown(const TimedStep& step) {
  if (unknown_steps++ == 0) unknown_since_ns = step.start_ns;
  return unknown_steps >= kDetector.calm.unknown_steps &&
         step.end_ns - unknown_since_ns >= kDetector.calm.unknown_ns;
}

double OpenIncident::Excess() const { return std::max(time.slowdown(), kDetector.min.slowdown.value) - 1; }

int64_t OpenIncident::SlowUntil(const RecentSteps& recent) const {
  for (const RecentStep& step : recent.Since(onset_ns) | std::views::reverse)
    if (IsSlow(step)) return step.end_ns;
  return INT64_MAX;
}

std::optional<TimeRange> OpenIncident::LastPause(const RecentSteps& recent) const {
  int64_t from_ns = 0, to_ns = 0;  // of the pause; to_ns: 0 until a slow step is found
  size_t steps = 0;
  const auto is_long = [&] {
    return steps >= kDetector.pause.steps && to_ns - from_ns >= kDetector.pause.ns;
  };
  for (const RecentStep& step : recent.Since(onset_ns) | std::views::reverse) {
    if (!IsSlow(step)) {
      if (to_ns == 0) continue;
      from_ns = step.start_ns;
      ++steps;
      continue;
    }
    if (is_long()) break;
    to_ns = step.start_ns;
    steps = 0;
  }
  return is_long() ? std::optional<TimeRange>({from_ns, to_ns}) : std::nullopt;
}

RecentSteps::Range OpenIncident::FindLarge(const RecentSteps& recent) const {
  const auto& table = kDetector.large;
  RecentSteps::Range none{recent.all().end(), recent.all().end()};
  if (recent.newest().ratio < table.ratio) return none;
  const RecentSteps::Range steps = recent.SinceLargestExcess(table.ratio, HUGE_VAL);
  if (steps.empty() || steps.front().start_ns <= onset_ns) return none;
  // Later, what was before is no longer among the newest steps.
  if (steps.size() > kDetector.min.steps_of_mean &&
      recent.newest().end_ns - steps.front().start_ns > kDetector.mean.window_ns)
    return none;
  const ComparedTime now = SumOf(steps);
  ComparedTime before = time;
  before -= now;
  if (before.slowdown() >= table.ratio ||
      now.slowdown() < 1 + table.factor * (std::max(before.slowdown(), kDetector.min.slowdown.value) - 1))
    return none;
  const double earlier_ns = LargestExcessNs({recent.Since(onset_ns).begin(), steps.begin()}, table.ratio);
  return now.ns - table.ratio * now.usual_ns >= table.factor * earlier_ns ? steps : none;
}

std::optional<int64_t> OpenIncident::WorseSince(const RecentSteps& recent) const {
  const RecentSteps::Range steps =
      recent.Since(std::max(recent.newest().end_ns - kDetector.mean.window_ns, onset_ns));
  const auto count = std::ranges::ssize(steps);
  const auto slow =
      std::ranges::count_if(steps, [](const RecentStep& step) { return step.ratio > kDetector.worse.ratio; });
  if (count < kDetector.worse.steps || slow * 2 < count) return std::nullopt;
  const ComparedTime now = SumOf(steps);
  ComparedTime before = time;
  before -= now;
  if (now.usual_ns > kDetector.worse.max_share * before.usual_ns) return std::nullopt;
  const double excess_before = std::max(before.slowdown(), kDetector.min.slowdown.value) - 1;
  const bool is_worse =
      now.slowdown() - 1 >= kDetector.worse.factor * excess_before && now.slowdown() >= kDetector.worse.ratio;
  return is_worse ? std::optional(steps.front().start_ns) : std::nullopt;
}

std::optional<int64_t> OpenIncident::RecoveredSince(const RecentSteps& recent,
                                                    const Thresholds& thresholds) const {
  const int64_t now_ns = recent.newest().end_ns;
  ComparedTime sum;
  size_t slow = 0, count = 0;
  int64_t since_ns = now_ns;
  const auto is_long = [&] {
    return count >= kDetector.calm.steps && now_ns - since_ns >= kDetector.calm.ns;
  };
  // As in the search for the onset: the steps before the end have the largest sum of excess times, those
  // after it the smallest. The last slow step may be a single one, seconds later.
  int64_t calm_since_ns = now_ns;
  double excess_ns = 0, least_ns = 0;
  for (const RecentStep& step : recent.all() | std::views::reverse) {
    if (step.start_ns < onset_ns) return std::nullopt;
    if (is_long()) break;
    sum += step.time;
    ++count;
    if (IsSlow(step)) ++slow;
    since_ns = step.start_ns;
    excess_ns += (step.ratio - SlowRatio()) * step.time.usual_ns;
    if (excess_ns > least_ns) continue;
    least_ns = excess_ns;
    calm_since_ns = since_ns;
  }
  if (!is_long()) return std::nullopt;
  const double clean_share = kDetector.calm.clean_factor * thresholds.ShareAbove(SlowRatio());
  const double share = static_cast<double>(slow) / static_cast<double>(count);
  if (share > std::max(kDetector.calm.slow_share.value, clean_share) ||
      sum.slowdown() - 1 >= std::max(kDetector.calm.excess * Excess(), (kDetector.min.slowdown - 1) / 2))
    return std::nullopt;
  // Where clean steps are as irregular, the calm may seem to begin within the steps that were detected.
  return share > clean_share ? calm_since_ns : std::max(since_ns, std::min(evident_ns, now_ns));
}

}  // namespace gpusonde::diagnose
