// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/budget.h"

#include <cmath>

namespace gpusonde::privacy {
namespace {

// ln of δ at one α.
double LogDelta(double rho, double epsilon, double alpha) {
  return (alpha - 1) * (alpha * rho - epsilon) - std::log(alpha - 1) + alpha * std::log1p(-1 / alpha);
}

// The smallest over α > 1; the exponent is convex in ln(α-1).
double LogDelta(double rho, double epsilon) {
  double low = std::log(1e-6);
  double high = std::log(1e9);
  constexpr double kGolden = 0.6180339887498949;
  for (int i = 0; i < 100; ++i) {
    const double left = high - kGolden * (high - low);
    const double right = low + kGolden * (high - low);
    if (LogDelta(rho, epsilon, 1 + std::exp(left)) < LogDelta(rho, epsilon, 1 + std::exp(right)))
      high = right;
    else
      low = left;
  }
  return LogDelta(rho, epsilon, 1 + std::exp(low));
}

}  // namespace

double Rho(double sensitivity, double sigma) { return sensitivity * sensitivity / (2 * sigma * sigma); }

double Epsilon(double rho, double delta) {
  double low = 0;
  double high = rho + 2 * std::sqrt(rho * -std::log(delta));  // Bun, Steinke: never too small
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (LogDelta(rho, middle) <= std::log(delta) ? high : low) = middle;
  }
  return high;
}

Budget::Budget(double epsilon, double delta, double rho) : windows_left_(0) {
  // ε grows with the windows: the last one that fits, by bisection.
  const auto fits = [&](int64_t windows) {
    return Epsilon(rho * static_cast<double>(windows), delta) <= epsilon;
  };
  constexpr int64_t kMax = int64_t{1} << 40;
  int64_t too_many = 1;
  while (too_many < kMax && fits(too_many)) too_many *= 2;
  while (windows_left_ + 1 < too_many) {
    const int64_t middle = windows_left_ + (too_many - windows_left_) / 2;
    (fits(middle) ? windows_left_ : too_many) = middle;
  }
}

Status Budget::Spend() {
  if (windows_left_ == 0)
    return Fail(ErrorCode::kUnavailable,
                "privacy budget: spent; this device's reports can't be released any more");
  --windows_left_;
  return {};
}

}  // namespace gpusonde::privacy
