// SPDX-License-Identifier: Apache-2.0
#include "compare/between_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace gpusonde::compare {
namespace {

void AddDeviations(VariationOfRuns& variation, const Deviations& deviations) {
  std::vector<VariationOfRuns::Value> values;
  for (const Deviation& one : deviations)
    if (one.known()) values.push_back({std::log(one.ratio()), 1});
  variation.AddSide(values);
}

}  // namespace

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

analyze::MeanError VariationOfRuns::Error(const TypicalVariance& typical) const {
  if (sides_ < 2 || freedom_ < 1 || expected_ <= 0) return {};
  analyze::MeanError of_run = typical.Moderate({.variance = squares_ / expected_, .freedom = freedom_});
  of_run.variance *= of_means_;
  return of_run;
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

Deviations DeviationsOf(std::span<const Run> runs, Kernels Run::* which, const std::string& name,
                        const Kernel& together, const std::function<double(uint32_t shape)>& usual_ns_of) {
  Deviations deviations(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    const auto found = (runs[i].*which).find(name);
    if (found == (runs[i].*which).end()) continue;
    for (const auto& [shape, group] : found->second.groups) {
      const double usual_ns = usual_ns_of(shape);
      const double deviation = group.log_mean - together.groups.at(shape).log_mean;
      deviations[i].Add({.usual_ns = usual_ns, .taken_ns = usual_ns * std::exp(deviation)});
    }
  }
  return deviations;
}

VariationOfRuns DurationsOfRuns::OfKernel(const std::string& name, bool other_shapes) {
  VariationOfRuns variation;
  const Kernel& of_a = (a_.together.*which_).at(name);
  const Kernel& of_b = (b_.together.*which_).at(name);
  for (const bool is_b : {false, true}) {
    const Side& side = is_b ? b_ : a_;
    const Kernel& mine = is_b ? of_b : of_a;
    const Kernel& other = is_b ? of_a : of_b;
    // Of B's launches, for either side.
    const auto usual_ns_of = [&](uint32_t shape) {
      if (other.groups.contains(shape) == other_shapes) return 0.;
      const KernelGroup& group = mine.groups.at(shape);
      if (other_shapes || is_b) return group.total_ns;
      const KernelGroup& after = of_b.groups.at(shape);
      return after.total_ns * std::exp(group.log_mean - after.log_mean);
    };
    const Deviations deviations = DeviationsOf(side.runs, which_, name, mine, usual_ns_of);
    AddDeviations(variation, deviations);
    if (other_shapes) continue;
    Deviations& all = is_b ? all_b_ : all_a_;
    all.resize(deviations.size());
    for (size_t i = 0; i < all.size(); ++i) all[i].Add(deviations[i]);
  }
  return variation;
}

VariationOfRuns DurationsOfRuns::OfAll() const {
  VariationOfRuns variation;
  for (const Deviations* const deviations : {&all_a_, &all_b_}) AddDeviations(variation, *deviations);
  return variation;
}

}  // namespace gpusonde::compare
