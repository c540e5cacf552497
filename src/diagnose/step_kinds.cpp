// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_kinds.h"

#include <algorithm>
#include <cstddef>

namespace gpusonde::diagnose {
namespace {

constexpr size_t kMaxTypes = 64;
constexpr double kCommonShare = 0.1, kNotableRatio = 1.1;

}  // namespace

void StepKinds::Add(const StepSpan& step) {
  ++steps_;
  if (by_type_.size() >= kMaxTypes && !by_type_.contains(step.type))
    by_type_.erase(std::ranges::min_element(by_type_, {}, [](const auto& of) { return of.second.steps; }));
  StepKind& kind = by_type_[step.type];
  ++kind.steps;
  kind.total_ns += static_cast<double>(step.end_ns - step.start_ns);
  kind.work += step.work;
  kind.first_ns = std::min(kind.first_ns, step.start_ns);
  kind.last_ns = std::max(kind.last_ns, step.end_ns);
}

std::vector<StepKind> StepKinds::Common() const {
  std::vector<StepKind> common;
  for (const auto& [type, kind] : by_type_)
    if (static_cast<double>(kind.steps) >= kCommonShare * static_cast<double>(steps_)) common.push_back(kind);
  if (common.empty()) return common;
  const auto [shortest, longest] = std::ranges::minmax(common, {}, &StepKind::mean_ns);
  if (longest.mean_ns() < kNotableRatio * shortest.mean_ns()) return {};
  std::ranges::sort(common, {}, &StepKind::first_ns);
  return common;
}

}  // namespace gpusonde::diagnose
