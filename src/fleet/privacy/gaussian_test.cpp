// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/gaussian.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

#include "fleet/privacy/budget.h"
#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::privacy {
namespace {

// Pearson's χ² of draws against the probabilities, tails pooled; its own mean is the degrees of freedom.
double ChiSquared(uint64_t sigma, int draws, Random& random, int& degrees) {
  std::map<int64_t, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[DrawGaussian(sigma, random)];
  const auto weight = [&](int64_t x) {
    return std::exp(-static_cast<double>(x * x) / (2 * static_cast<double>(sigma * sigma)));
  };
  const auto edge = static_cast<int64_t>(3 * sigma);
  double total = 0;
  for (int64_t x = -20 * edge; x <= 20 * edge; ++x) total += weight(x);
  double inside = 0;
  double chi = 0;
  int rest = draws;
  for (int64_t x = -edge; x <= edge; ++x) {
    const double probability = weight(x) / total;
    inside += probability;
    rest -= counts[x];
    chi += std::pow(counts[x] - draws * probability, 2) / (draws * probability);
  }
  degrees = static_cast<int>(2 * edge + 1);
  return chi + std::pow(rest - draws * (1 - inside), 2) / (draws * (1 - inside));
}

TEST(Gaussian, HasItsProbabilities) {
  Random random = Seeded(1);
  for (const uint64_t sigma : {1, 2, 7}) {
    int degrees = 0;
    const double chi = ChiSquared(sigma, 200'000, random, degrees);
    EXPECT_LT(chi, degrees + 5 * std::sqrt(2.0 * degrees)) << sigma;
  }
}

TEST(Gaussian, HasItsMomentsAtTheSigmaOfReleases) {
  Random random = Seeded(2);
  constexpr int kDraws = 200'000;
  double sum = 0;
  double squares = 0;
  double fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x =
        static_cast<double>(DrawGaussian(kNoiseSigma, random)) / static_cast<double>(kNoiseSigma);
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(fourths / kDraws, 3, 5 * std::sqrt(96.0 / kDraws));
}

TEST(Gaussian, SmudgingIsTwoToTheSeventyWide) {
  Random random = Seeded(3);
  constexpr int kDraws = 100'000;
  double sum = 0;
  double squares = 0;
  int odd = 0;
  for (int i = 0; i < kDraws; ++i) {
    const Int128 drawn = DrawSmudging(random);
    const double x = std::ldexp(static_cast<double>(drawn), -70);
    sum += x;
    squares += x * x;
    odd += static_cast<int>(drawn & 1);
  }
  EXPECT_NEAR(sum / kDraws, 0, 5 / std::sqrt(kDraws));
  EXPECT_NEAR(squares / kDraws, 1, 5 * std::sqrt(2.0 / kDraws));
  EXPECT_NEAR(odd, kDraws / 2.0, 5 * std::sqrt(kDraws) / 2)
      << "every number, not multiples of the coarse step";
}

}  // namespace
}  // namespace gpusonde::privacy
