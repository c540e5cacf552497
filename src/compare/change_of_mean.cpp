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

void ErrorOfSum::Add(const ErrorOfSum& other, double factor) {
  variance_ += factor * other.variance_;
  squares_ += factor * factor * other.squares_;
}

double ErrorOfSum::freedom() const {
  return squares_ > 0 ? std::max(1.0, variance_ * variance_ / squares_) : 1;
}

void ChangeOfMean::Add(double taken_ns, double difference, const analyze::MeanError& a,
                       const analyze::MeanError& b) {
  const double before_ns = taken_ns * std::exp(-difference);
  taken_ns_ += taken_ns;
  before_ns_ += before_ns;
  error_of_taken_.Add(b, taken_ns * taken_ns);
  error_of_before_.Add(a, before_ns * before_ns);
}

double ChangeOfMean::difference() const { return std::log(taken_ns_ / before_ns_); }

analyze::MeanError ChangeOfMean::Within() const {
  ErrorOfSum error;
  error.Add(error_of_taken_, 1 / (taken_ns_ * taken_ns_));
  error.Add(error_of_before_, 1 / (before_ns_ * before_ns_));
  return {.variance = error.variance(), .freedom = error.freedom()};
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
  if (empty()) return std::nullopt;
  const analyze::MeanError between = runs.variation.Error(runs.typical);
  if (runs.several && between.freedom == 0) return std::nullopt;
  ErrorOfSum tested;
  tested.Add(runs.several && between.variance >= Within().variance ? between : Within());
  if (!runs.several) tested.Add(runs.of_each);
  ErrorOfSum shown = tested;
  if (!runs.several) shown.Add(runs.of_all);
  const double error = std::sqrt(tested.variance());
  const double margin = std::log1p(min_change);
  const double half = StudentQuantile(kTail95, shown.freedom()) * std::sqrt(shown.variance());
  const double beyond = Beyond(min_change, runs);
  std::optional<Ratio::Apart> apart;
  if (!runs.several && runs.of_all.variance > 0) {
    const double center = difference() - runs.shift;
    const double half_apart = StudentQuantile(kTail95, tested.freedom()) * error;
    apart = {.low = std::exp(center - half_apart), .high = std::exp(center + half_apart)};
  }
  return Ratio{.ratio = std::exp(difference()),
               .low = std::exp(difference() - half),
               .high = std::exp(difference() + half),
               .apart = apart,
               .p = error > 0    ? StudentTail(beyond / error, tested.freedom())
                    : beyond > 0 ? 0.
                                 : 1.,
               .detectable = std::exp(margin + 2 * StudentQuantile(kTailTested, tested.freedom()) * error),
               .between_runs = runs.variation.Deviation()};
}

}  // namespace gpusonde::compare
