// SPDX-License-Identifier: Apache-2.0
#include "compare/between_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusonde::compare {

void VariationOfRuns::AddSide(std::span<const Value> runs) {
  if (runs.empty()) return;
  double all = 0, mean = 0, of_mean = 0;
  for (const Value& run : runs) all += run.weight;
  for (const Value& run : runs) {
    const double share = run.weight / all;
    mean += share * run.value;
    of_mean += share * share;
  }
  for (const Value& run : runs) squares_ += (run.value - mean) * (run.value - mean);
  const auto count = static_cast<double>(runs.size());
  // The sum over runs of 1 − 2 share + Σ share², which is count − 1 for equal weights.
  expected_ += count - 2 + count * of_mean;
  of_means_ += of_mean;
  freedom_ += count - 1;
  ++sides_;
}

analyze::MeanError VariationOfRuns::Error() const {
  if (sides_ < 2 || freedom_ < 1 || expected_ <= 0) return {};
  return {.variance = squares_ / expected_ * of_means_, .freedom = freedom_};
}

std::optional<double> VariationOfRuns::Deviation() const {
  if (Error().freedom == 0) return std::nullopt;
  return std::sqrt(squares_ / expected_);
}

Side::Side(std::vector<Run> all) : runs(std::move(all)) {
  together = runs.front();
  for (const Run& run : std::span(runs).subspan(1)) together.Merge(run);
  together.FinishMerging();
}

VariationOfRuns DurationsOfRuns::OfKernel(const std::string& name, bool other_shapes) {
  VariationOfRuns variation;
  const Kernel& of_a = a_.together.kernels.at(name);
  const Kernel& of_b = b_.together.kernels.at(name);
  for (const bool is_b : {false, true}) {
    const Side& side = is_b ? b_ : a_;
    const Kernel& mine = is_b ? of_b : of_a;
    const Kernel& other = is_b ? of_a : of_b;
    Sums& all = is_b ? all_b_ : all_a_;
    all.resize(side.runs.size());
    Sums sums(side.runs.size());
    for (size_t i = 0; i < side.runs.size(); ++i) {
      const auto found = side.runs[i].kernels.find(name);
      if (found == side.runs[i].kernels.end()) continue;
      for (const auto& [shape, group] : found->second.groups) {
        const bool common = other.groups.contains(shape);
        if (common == other_shapes) continue;
        const KernelGroup& together = mine.groups.at(shape);
        const double weight = common ? of_b.groups.at(shape).total_ns : together.total_ns;
        sums[i].weighted += weight * (group.log_mean - together.log_mean);
        sums[i].weight += weight;
      }
      if (other_shapes) continue;
      all[i].weighted += sums[i].weighted;
      all[i].weight += sums[i].weight;
    }
    AddTo(variation, sums);
  }
  return variation;
}

VariationOfRuns DurationsOfRuns::OfAll() const {
  VariationOfRuns variation;
  for (const Sums* const sums : {&all_a_, &all_b_}) AddTo(variation, *sums);
  return variation;
}

void DurationsOfRuns::AddTo(VariationOfRuns& variation, const Sums& sums) {
  std::vector<VariationOfRuns::Value> values;
  for (const Sum& sum : sums)
    if (sum.weight > 0) values.push_back({sum.weighted / sum.weight, 1});
  variation.AddSide(values);
}

}  // namespace gpusonde::compare
