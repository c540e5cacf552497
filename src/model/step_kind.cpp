// SPDX-License-Identifier: Apache-2.0
#include "model/step_kind.h"

#include <algorithm>

namespace gpusonde::model {
namespace {

constexpr double kCommonShare = 0.1, kNotableRatio = 1.1;

}  // namespace

std::vector<StepKind> CommonKinds(std::vector<StepKind> kinds, int64_t steps) {
  std::erase_if(kinds, [steps](const StepKind& kind) {
    return static_cast<double>(kind.steps) < kCommonShare * static_cast<double>(steps);
  });
  if (kinds.empty()) return kinds;
  const auto [shortest, longest] = std::ranges::minmax(kinds, {}, &StepKind::mean_ns);
  if (longest.mean_ns() < kNotableRatio * shortest.mean_ns()) return {};
  std::ranges::sort(kinds, {}, &StepKind::first_ns);
  return kinds;
}

}  // namespace gpusonde::model
