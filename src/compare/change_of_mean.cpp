// SPDX-License-Identifier: Apache-2.0
#include "compare/change_of_mean.h"

#include <algorithm>
#include <cmath>

#include "analyze/stats/inference.h"

namespace gpusonde::compare {
namespace {

constexpr double kTail95 = 0.025;     // of each side
constexpr double kTailTested = 0.05;  // the error of the first and of the second kind
// The smallest change is for what runs differ by. With one run each that is in the error already, so that a
// change has to be significantly above half of it only: simulated runs of 20 kernels that differ by 0.7 % had
// 4 % of false reports with a half, 9 % with none, and 1.5 % with all of it, but then only 92 % of changes by
// 5 % were found instead of 95 %.
constexpr double kMarginOfSingleRuns = 0.5;

}  // namespace

void ErrorOfSum::Add(const analyze::MeanError& error, double factor) {
  const double variance = factor * error.variance;
  variance_ += variance;
  if (error.freedom > 0) squares_ += variance * variance / error.freedom;
}

double ErrorOfSum::freedom() const {
  return squares_ > 0 ? std::max(1.0, variance_ * variance_ / squares_) : 1;
}

void ChangeOfMean::Add(double weight, double difference, const analyze::MeanError& a,
                       const analyze::MeanError& b) {
  weight_ += weight;
  weighted_ += weight * difference;
  for (const analyze::MeanError& error : {a, b}) error_.Add(error, weight * weight);
}

analyze::MeanError ChangeOfMean::Within() const {
  return {.variance = error_.variance() / (weight_ * weight_), .freedom = error_.freedom()};
}

// How far the change is beyond what is reported. One that merely kept its duration while the others changed
// is neither slower nor faster.
double ChangeOfMean::Beyond(double min_change, const RunsOf& runs) const {
  const double margin = std::log1p(min_change);
  const double change = std::abs(difference());
  if (runs.several || change <= margin) return change - margin;
  const double apart = difference() - runs.shift;
  return apart * difference() > 0 ? std::abs(apart) - kMarginOfSingleRuns * margin : -margin;
}

std::optional<Ratio> ChangeOfMean::Finish(double min_change, const RunsOf& runs) const {
  if (weight_ == 0) return std::nullopt;
  const analyze::MeanError between = runs.variation.Error(runs.typical);
  if (runs.several && between.freedom == 0) return std::nullopt;
  ErrorOfSum tested;
  tested.Add(runs.several && between.variance >= Within().variance ? between : Within());
  if (!runs.several) tested.Add(runs.of_each);
  ErrorOfSum shown = tested;
  if (!runs.several) shown.Add(runs.of_all);
  const double error = std::sqrt(tested.variance());
  const double margin = std::log1p(min_change);
  const double half = analyze::StudentQuantile(kTail95, shown.freedom()) * std::sqrt(shown.variance());
  const double beyond = Beyond(min_change, runs);
  return Ratio{
      .ratio = std::exp(difference()),
      .low = std::exp(difference() - half),
      .high = std::exp(difference() + half),
      .p = error > 0    ? analyze::StudentTail(beyond / error, tested.freedom())
           : beyond > 0 ? 0.
                        : 1.,
      .detectable = std::exp(margin + 2 * analyze::StudentQuantile(kTailTested, tested.freedom()) * error),
      .between_runs = runs.variation.Deviation()};
}

}  // namespace gpusonde::compare
