// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_kinds.h"

#include <algorithm>
#include <cstddef>
#include <ranges>

namespace gpusonde::diagnose {
namespace {

constexpr size_t kMaxTypes = 64;

}  // namespace

void StepKinds::Add(const StepSpan& step) {
  ++steps_;
  if (by_type_.size() >= kMaxTypes && !by_type_.contains(step.type))
    by_type_.erase(std::ranges::min_element(by_type_, {}, [](const auto& of) { return of.second.steps; }));
  model::StepKind& kind = by_type_[step.type];
  ++kind.steps;
  kind.total_ns += static_cast<double>(step.end_ns - step.start_ns);
  kind.work += step.work;
  kind.first_ns = std::min(kind.first_ns, step.start_ns);
  kind.last_ns = std::max(kind.last_ns, step.end_ns);
}

std::vector<model::StepKind> StepKinds::Common() const {
  const auto kinds = by_type_ | std::views::values;
  return model::CommonKinds({kinds.begin(), kinds.end()}, steps_);
}

}  // namespace gpusonde::diagnose
