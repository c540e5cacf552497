// SPDX-License-Identifier: Apache-2.0
#include "fleet/histogram.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <random>

namespace gpusonde::fleet {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

uint32_t SumOfBins(const Row& row) { return std::accumulate(row.begin(), row.begin() + kBins, 0U); }

TEST(RoundToReport, SumsToTheWeightAndNoBinIsOffByOne) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> draw(1);
  for (int round = 0; round < 1000; ++round) {
    Bins weights;
    for (double& weight : weights)
      weight = random() % 3 == 0 ? 0 : draw(random) * std::pow(10.0, round % 600 - 300);
    const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
    const Row row = RoundToReport(weights);
    ASSERT_EQ(SumOfBins(row), privacy::kReportWeight);
    ASSERT_EQ(row[kBins], privacy::kReportWeight);
    for (size_t bin = 0; bin < kBins; ++bin) ASSERT_LT(std::abs(row[bin] - weights[bin] / total * 255), 1);
  }
}

TEST(RoundToReport, TiesGoToTheLowestBins) {
  Bins weights;
  weights.fill(1);  // 255 / 63 = 4 and 3/63
  const Row row = RoundToReport(weights);
  for (size_t bin = 0; bin < kBins; ++bin) EXPECT_EQ(row[bin], bin < 3 ? 5U : 4U);
}

TEST(RoundToReport, NothingIsBinZeroAndNonsenseIsNothing) {
  Row idle{};
  idle[0] = idle[kBins] = privacy::kReportWeight;
  EXPECT_EQ(RoundToReport({}), idle);
  Bins nonsense{};
  nonsense[3] = kNan;
  nonsense[4] = -5;
  nonsense[5] = kInfinity;
  EXPECT_EQ(RoundToReport(nonsense), idle);
  nonsense[6] = 1e-300;
  EXPECT_EQ(RoundToReport(nonsense)[6], privacy::kReportWeight);
}

}  // namespace
}  // namespace gpusonde::fleet
