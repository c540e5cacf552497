// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/timeline/host_gaps.h"
#include "base/order_statistics.h"
#include "base/time_range.h"
#include "model/metric_catalogue.h"

namespace gpusonde::analyze {
namespace {

// A clock below nine tenths of the usual one is low: boost clocks vary by a few per cent with temperature and
// power in normal operation.
constexpr double kLow = 0.9;
// A sample holds until the next one, but for so many of their usual distances at most.
constexpr int64_t kMaxHeld = 4;
constexpr size_t kMinClockSamples = 10;
constexpr size_t kLongestStretches = 3;

// A stretch of time with a low clock.
struct LowClock {
  TimeRange range;
  int32_t mhz = 0;
  uint32_t reasons = 0;
};

// The times of slow steps on the device and of unusual windows; sorted, disjoint.
std::vector<TimeRange> SlowTimes(const JobRank& rank, std::span<const WindowLine> windows) {
  std::vector<TimeRange> slow;
  const std::vector<StepTimes>& steps = rank.result.steps.steps;
  if (!steps.empty()) {
    std::vector<int64_t> durations;
    for (const StepTimes& step : steps) durations.push_back(step.step_ns);
    const auto least = kSlowStep * static_cast<double>(MedianOf(std::move(durations)));
    for (const StepTimes& step : steps)
      if (step.gpu_ns > 0 && static_cast<double>(step.step_ns) >= least)
        slow.push_back({step.gpu_begin_ns, step.gpu_begin_ns + step.gpu_ns});
  }
  const int64_t first_ns = rank.result.extent.first_ns;
  for (const WindowLine& window : windows)
    if (window.rank == rank.number) slow.push_back({first_ns + window.begin_ns, first_ns + window.end_ns});
  std::ranges::sort(slow, {}, &TimeRange::from_ns);
  return UnionOf(std::move(slow));
}

std::vector<LowClock> LowTimes(std::span<const importers::ClockSample> samples, int64_t usual_mhz,
                               int64_t end_ns) {
  std::vector<int64_t> distances;
  for (size_t i = 1; i < samples.size(); ++i)
    distances.push_back(samples[i].time_ns - samples[i - 1].time_ns);
  const int64_t held_ns = kMaxHeld * MedianOf(std::move(distances));
  std::vector<LowClock> low;
  for (size_t i = 0; i < samples.size(); ++i) {
    const importers::ClockSample& sample = samples[i];
    if (sample.mhz == 0 || static_cast<double>(sample.mhz) >= kLow * static_cast<double>(usual_mhz) ||
        (sample.reasons & model::kThrottleIdle) != 0)
      continue;
    const int64_t next_ns = i + 1 < samples.size() ? samples[i + 1].time_ns : end_ns;
    low.push_back({.range = {sample.time_ns, std::min(next_ns, sample.time_ns + held_ns)},
                   .mhz = sample.mhz,
                   .reasons = sample.reasons});
  }
  return low;
}

// Joins adjacent stretches, and keeps the longest.
std::vector<HostGapsLine::Gap> Longest(const std::vector<TimeRange>& stretches, int64_t first_ns) {
  std::vector<Gap> joined;
  for (const TimeRange& stretch : UnionOf(stretches)) joined.push_back({stretch.from_ns, stretch.to_ns});
  std::ranges::sort(joined, {}, &Gap::Key);
  std::vector<HostGapsLine::Gap> longest;
  for (size_t i = 0; i < std::min(joined.size(), kLongestStretches); ++i)
    longest.push_back({joined[i].begin_ns - first_ns, joined[i].end_ns - first_ns});
  return longest;
}

std::optional<ClockLine> CompareClock(const JobRank& rank, std::span<const WindowLine> windows) {
  const Extent& extent = rank.result.extent;
  std::vector<importers::ClockSample> samples;
  std::vector<int64_t> known;
  for (const importers::ClockSample& sample : rank.clock) {
    if (sample.time_ns < extent.first_ns || sample.time_ns >= extent.last_ns) continue;
    samples.push_back(sample);
    if (sample.mhz > 0) known.push_back(sample.mhz);
  }
  if (known.size() < kMinClockSamples) return std::nullopt;
  ClockLine line{.rank = rank.number,
                 .trace = rank.trace,
                 .samples = static_cast<int64_t>(samples.size()),
                 .usual_mhz = ValueOfRank(known, (known.size() - 1) * 9 / 10)};
  const std::vector<TimeRange> slow = SlowTimes(rank, windows);
  line.slow_ns = LengthOf(slow);
  std::vector<TimeRange> low_and_slow;
  size_t next = 0;
  for (const LowClock& low : LowTimes(samples, line.usual_mhz, extent.last_ns)) {
    line.other_low_ns += LengthOf(low.range);
    while (next < slow.size() && slow[next].to_ns <= low.range.from_ns) ++next;
    for (size_t i = next; i < slow.size() && slow[i].from_ns < low.range.to_ns; ++i) {
      const TimeRange both{std::max(slow[i].from_ns, low.range.from_ns),
                           std::min(slow[i].to_ns, low.range.to_ns)};
      const int64_t both_ns = LengthOf(both);
      line.other_low_ns -= both_ns;
      line.slow_low_ns += both_ns;
      line.lost_ns += static_cast<int64_t>(Int128{both_ns} * (line.usual_mhz - low.mhz) / line.usual_mhz);
      line.lowest_mhz = line.lowest_mhz == 0 ? low.mhz : std::min<int64_t>(line.lowest_mhz, low.mhz);
      line.throttle_reasons |= low.reasons;
      low_and_slow.push_back(both);
    }
  }
  line.longest = Longest(low_and_slow, extent.first_ns);
  return line;
}

}  // namespace

std::vector<ClockLine> CompareClocks(const Job& job, std::span<const WindowLine> windows) {
  std::vector<ClockLine> lines;
  for (const JobRank& rank : job.ranks)
    if (std::optional<ClockLine> line = CompareClock(rank, windows)) lines.push_back(std::move(*line));
  return lines;
}

}  // namespace gpusonde::analyze
