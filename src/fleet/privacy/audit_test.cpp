// SPDX-License-Identifier: Apache-2.0
// An audit that tries to refute the privacy claim from releases alone: how well can an adversary who knows
// everything but one report distinguish two possible reports? It measures the mechanism, not its proof, and
// finds flaws that a proof can't: too little noise, noise shared by slots, repeated noise. Method: Nasr et
// al., "Tight auditing of differentially private machine learning" (2023), section 5, for a Gaussian
// mechanism: its μ is the distance of the two hypotheses in standard deviations along the direction in which
// they differ.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "fleet/privacy/budget.h"
#include "fleet/privacy/decryptor.h"
#include "fleet/privacy/masks.h"

namespace gpusonde::privacy {
namespace {

constexpr double kDelta = 1e-9;
constexpr double kClaimedEpsilon = 1;

// A report that moves from one row and bin to another changes four slots: two bins and two contributors.
constexpr std::array<int, 4> kChange = {-255, 255, -255, 255};

// The noise added to the slots in a window; each trial requests it again.
using Mechanism = std::function<std::vector<int64_t>(uint32_t window, uint64_t trial)>;

std::array<uint8_t, kKeyBytes> Secret() {
  std::array<uint8_t, kKeyBytes> secret{};
  secret.fill(42);
  return secret;
}

ListHash HashOf(uint32_t window, uint64_t trial) {
  return ReportList::Create(window, 1, {{trial, {}}})->hash();
}

Mechanism Ours(uint64_t sigma) {
  return [sigma](uint32_t window, uint64_t trial) { return NoiseOf(Secret(), HashOf(window, trial), sigma); };
}

struct Moments {
  double count = 0;
  double sum = 0;
  double squares = 0;
  void Add(double value) {
    ++count;
    sum += value;
    squares += value * value;
  }
  double mean() const { return sum / count; }
  double variance() const { return squares / count - mean() * mean(); }
};

// A lower bound, up to 5 standard errors, of the mechanism's ε at δ for the change of one report in the
// second of two windows; `weight` is the distinguisher's weight of the first window, in which nothing
// changed. The slots of a release count as 1,024 trials of four, as they should be independent.
double EpsilonAtLeast(const Mechanism& mechanism, double weight) {
  constexpr uint64_t kReleases = 12;
  std::array<Moments, 2> hypotheses;
  for (uint64_t trial = 0; trial < 2 * kReleases; ++trial) {
    const uint64_t changed = trial % 2;
    const auto before = mechanism(1, trial);
    const auto now = mechanism(2, trial);
    for (size_t slot = 0; slot + 4 <= kReportSlots; slot += 4) {
      double along = 0;
      for (size_t i = 0; i < 4; ++i) {
        const auto seen = static_cast<double>(now[slot + i]) + (changed != 0 ? kChange[i] : 0);
        along += kChange[i] / kSensitivity * (seen + weight * static_cast<double>(before[slot + i]));
      }
      hypotheses[changed].Add(along);
    }
  }
  const double deviation = std::sqrt((hypotheses[0].variance() + hypotheses[1].variance()) / 2);
  const double distance = hypotheses[1].mean() - hypotheses[0].mean();
  if (deviation < 1e-6 * std::abs(distance)) return std::numeric_limits<double>::infinity();
  const double mu = distance / deviation - 5 * std::sqrt(2 / hypotheses[0].count);
  return mu <= 0 ? 0 : Epsilon(mu * mu / 2, kDelta);
}

double Audit(const Mechanism& mechanism) {
  // Using the second window only, and subtracting the first one's noise as if it were repeated.
  return std::max(EpsilonAtLeast(mechanism, 0), EpsilonAtLeast(mechanism, -1));
}

TEST(Audit, AcceptsTheClaimedEpsilon) { EXPECT_LE(Audit(Ours(kNoiseSigma)), kClaimedEpsilon); }

TEST(Audit, IsNotFooledByHalfTheNoise) { EXPECT_GT(Audit(Ours(kNoiseSigma / 2)), kClaimedEpsilon); }

TEST(Audit, FindsNoiseThatSlotsShare) {
  EXPECT_GT(Audit([](uint32_t window, uint64_t trial) {
              const auto noise = NoiseOf(Secret(), HashOf(window, trial), kNoiseSigma);
              return std::vector<int64_t>(kReportSlots, noise[0]);
            }),
            kClaimedEpsilon);
}

TEST(Audit, FindsNoiseThatComesBack) {
  EXPECT_GT(Audit([](uint32_t, uint64_t trial) { return NoiseOf(Secret(), HashOf(0, trial), kNoiseSigma); }),
            kClaimedEpsilon);
}

}  // namespace
}  // namespace gpusonde::privacy
