// SPDX-License-Identifier: Apache-2.0
#include "compare/phases.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "analyze/detail/spans.h"
#include "analyze/extent.h"
#include "analyze/stats/batch_means.h"
#include "analyze/stats/log_moments.h"
#include "model/span_name.h"

namespace gpusonde::compare {
namespace {

constexpr size_t kStretches = 128;  // of time, as those of kernels
constexpr double kLogUnit = std::numbers::ln2 / analyze::kLogUnits;

Kernel PhaseOf(const std::vector<TimeRange>& ranges, const analyze::Extent& extent) {
  Kernel phase;
  KernelGroup& group = phase.groups[0];
  analyze::LogMoments logs;
  std::vector<analyze::Batch> stretches(kStretches);
  std::vector<int64_t> counts(kStretches);
  const double span_ns = std::max(1., static_cast<double>(extent.last_ns - extent.first_ns));
  for (const TimeRange& range : ranges) {
    const int64_t duration_ns = range.to_ns - range.from_ns;
    const int32_t log = analyze::FixedLog2(duration_ns);
    const double at = static_cast<double>(range.from_ns - extent.first_ns) / span_ns;
    const size_t stretch = std::min(kStretches - 1, static_cast<size_t>(at * kStretches));
    logs.Add(log);
    stretches[stretch].Add(log);
    ++counts[stretch];
    ++group.count;
    group.total_ns += static_cast<double>(duration_ns);
  }
  group.log_mean = logs.Mean() * kLogUnit;
  group.error = analyze::ErrorOfMean(stretches);
  if (logs.count > 1)
    group.error.variance = std::max(group.error.variance, logs.Variance() / static_cast<double>(logs.count)) *
                           kLogUnit * kLogUnit;
  phase.amount = {.count = group.count, .total_ns = std::llround(group.total_ns)};
  phase.launches = analyze::RelativeErrorOfMean(counts);
  return phase;
}

}  // namespace

void AddPhases(const analyze::StepCandidates& ranges, Kernels& phases) {
  for (const int64_t process : ranges.Processes()) {
    const auto by_label = ranges.RangesOf(process);
    analyze::Extent extent;
    for (const auto& [label, all] : by_label)
      for (const TimeRange& range : all) extent.Cover(range.from_ns, range.to_ns);
    for (const auto& [label, all] : by_label) {
      const std::string name(model::WithoutArguments(label));
      const auto [known, is_new] = phases.try_emplace(name, PhaseOf(all, extent));
      if (!is_new) known->second.Merge(PhaseOf(all, extent));
    }
  }
}

}  // namespace gpusonde::compare
