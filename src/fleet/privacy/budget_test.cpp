// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/budget.h"

#include <gtest/gtest.h>

#include <cmath>

namespace gpusonde::privacy {
namespace {

constexpr double kBudgetDelta = 1e-9;

TEST(Budget, OneWindowCostsLessThanOne) {
  const double rho = Rho(kSensitivity, static_cast<double>(kNoiseSigma));
  EXPECT_NEAR(rho, 1 / (2 * 6.51 * 6.51), 1e-4);
  EXPECT_LE(Epsilon(rho, kBudgetDelta), 1);
  EXPECT_LE(Epsilon(24 * rho, kBudgetDelta), 5.2);
  EXPECT_LE(Epsilon(168 * rho, kBudgetDelta), 14.9);
}

// The exact ε of a Gaussian mechanism (Balle, Wang 2018, theorem 8): no conversion may promise less.
TEST(Budget, NeverClaimsLessThanTheTruth) {
  for (const double sigmas : {0.5, 2.0, 6.51, 20.0}) {
    const double epsilon = Epsilon(Rho(1, sigmas), kBudgetDelta);
    const auto normal = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
    const double delta = normal(1 / (2 * sigmas) - epsilon * sigmas) -
                         std::exp(epsilon) * normal(-1 / (2 * sigmas) - epsilon * sigmas);
    EXPECT_LE(delta, kBudgetDelta * 1.000001) << sigmas;
    EXPECT_GT(delta, kBudgetDelta / 100) << "and isn't absurdly careful";
  }
}

TEST(Budget, IsRefusedOnceSpent) {
  const double rho = Rho(kSensitivity, static_cast<double>(kNoiseSigma));
  Budget week(14.8, kBudgetDelta, rho);
  const int64_t windows = week.windows_left();
  EXPECT_EQ(windows, 183);
  EXPECT_LE(Epsilon(rho * static_cast<double>(windows), kBudgetDelta), 14.8);
  for (int64_t i = 0; i < windows; ++i) ASSERT_TRUE(week.Spend().has_value());
  const Status refused = week.Spend();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(week.windows_left(), 0);
}

}  // namespace
}  // namespace gpusonde::privacy
