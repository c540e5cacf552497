// SPDX-License-Identifier: Apache-2.0
#include "compare/work.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analyze/stats/inference.h"

namespace gpusonde::compare {
namespace {

// The counts of a kernel that may vary by more say nothing about the amount of work.
constexpr double kMaxCountVariation = 0.2;
// The amount of work is known if kernels with this share of A's kernel time are in both runs, and with this
// share of those agree about it.
constexpr double kMinCommon = 0.2, kMinAgreement = 0.5;

double CountRatio(const Kernel& a, const Kernel& b) {
  return static_cast<double>(b.amount.count) / static_cast<double>(a.amount.count);
}

// By how much a kernel's ratio of launches may differ from the amount of work that it agrees with.
double Tolerance(const Kernel& a, const Kernel& b) {
  return std::clamp(VariationOf(a.launches, b.launches), kMinCountChange, kMaxCountVariation);
}

}  // namespace

double VariationOf(const analyze::MeanError& a, const analyze::MeanError& b) {
  const double freedom = std::min(a.freedom, b.freedom);
  if (freedom == 0) return 1;
  return StudentQuantile(kTailOfCounts, freedom) * std::sqrt(a.variance + b.variance);
}

std::optional<double> WorkOf(const Run& a, const Run& b) {
  struct Vote {
    double ratio, weight, tolerance;
  };
  std::vector<Vote> votes;
  double all = 0, common = 0;
  for (const auto& [name, kernel] : a.kernels) {
    const double weight = static_cast<double>(kernel.amount.total_ns);
    all += weight;
    const auto other = b.kernels.find(name);
    if (other == b.kernels.end()) continue;
    votes.push_back({CountRatio(kernel, other->second), weight, Tolerance(kernel, other->second)});
    common += weight;
  }
  if (common <= kMinCommon * all) return std::nullopt;
  std::ranges::sort(votes, {}, &Vote::ratio);
  double below = 0;
  const auto median = std::ranges::find_if(votes, [&](const Vote& vote) {
    below += vote.weight;
    return below >= common / 2;
  });
  double agreed = 0, in_b = 0;
  for (const Vote& vote : votes) {
    if (std::abs(vote.ratio / median->ratio - 1) > vote.tolerance) continue;
    agreed += vote.weight;
    in_b += vote.weight * vote.ratio;
  }
  if (agreed < kMinAgreement * common) return std::nullopt;
  return in_b / agreed;
}

std::optional<double> WorkBySteps(const Run& a, const Run& b) {
  if (a.step_label.empty() || a.step_label != b.step_label || a.steps == 0 || b.steps == 0)
    return std::nullopt;
  return b.steps / a.steps;
}

bool StepsAreBetter(const Run& a, const Run& b) {
  const std::optional<double> kernels = WorkOf(a, b), steps = WorkBySteps(a, b);
  if (!kernels.has_value() || !steps.has_value()) return steps.has_value();
  int64_t with_kernels = 0, with_steps = 0;
  for (const auto& [name, kernel] : a.kernels) {
    const auto other = b.kernels.find(name);
    if (other == b.kernels.end()) continue;
    const double ratio = CountRatio(kernel, other->second), tolerance = Tolerance(kernel, other->second);
    with_kernels += std::abs(ratio / *kernels - 1) <= tolerance ? 1 : 0;
    with_steps += std::abs(ratio / *steps - 1) <= tolerance ? 1 : 0;
  }
  return with_steps > with_kernels;
}

}  // namespace gpusonde::compare
