// SPDX-License-Identifier: Apache-2.0
#include "compare/typical_variance.h"

#include <algorithm>
#include <cmath>

namespace gpusonde::compare {
namespace {

// The first two derivatives of the logarithm of the gamma function, for x > 0, within 1e-8 (Abramowitz and
// Stegun 1964, 6.3.5, 6.3.18, 6.4.6 and 6.4.12).
constexpr double kAsymptotic = 8;

double Digamma(double x) {
  double sum = 0;
  for (; x < kAsymptotic; ++x) sum -= 1 / x;
  const double square = 1 / (x * x);
  return sum + std::log(x) - 1 / (2 * x) - square * (1. / 12 - square * (1. / 120 - square / 252));
}

double Trigamma(double x) {
  double sum = 0;
  for (; x < kAsymptotic; ++x) sum += 1 / (x * x);
  const double square = 1 / (x * x);
  return sum + 1 / x + square / 2 + square / x * (1. / 6 - square * (1. / 30 - square / 42));
}

// The x whose Trigamma is `value`, at most `most`; it falls with x.
double InverseTrigamma(double value, double most) {
  if (value <= Trigamma(most)) return most;
  constexpr double kMin = 1e-3;
  double low = kMin, high = most;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (Trigamma(middle) > value ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

void TypicalVariance::Add(double variance, double freedom) {
  if (variance > 0 && freedom >= 1) all_.push_back({.variance = variance, .freedom = freedom});
}

void TypicalVariance::Finish() {
  if (all_.size() < kMinKernels) return;
  // The logarithm of a variance with f degrees of freedom is off by Digamma(f / 2) − log(f / 2) on average,
  // and varies by Trigamma(f / 2); what the logarithms vary by beyond that is how different the kernels are.
  const auto count = static_cast<double>(all_.size());
  std::vector<double> logs;
  double mean = 0, expected = 0, squares = 0;
  for (const analyze::MeanError& one : all_) {
    logs.push_back(std::log(one.variance) - Digamma(one.freedom / 2) + std::log(one.freedom / 2));
    mean += logs.back() / count;
    expected += Trigamma(one.freedom / 2) / count;
  }
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double excess = squares / (count - 1) - expected;
  freedom_ = 2 * InverseTrigamma(std::max(excess, 0.), kMaxFreedom / 2);
  variance_ = std::exp(mean + Digamma(freedom_ / 2) - std::log(freedom_ / 2));
}

analyze::MeanError TypicalVariance::Moderate(const analyze::MeanError& own) const {
  const double freedom = own.freedom + freedom_;
  if (freedom <= 0) return own;
  return {.variance = (own.freedom * own.variance + freedom_ * variance_) / freedom, .freedom = freedom};
}

}  // namespace gpusonde::compare
