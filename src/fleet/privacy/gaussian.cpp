// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/gaussian.h"

namespace gpusonde::privacy {
namespace {

// True with probability exp(-numerator/denominator), the ratio at most 1 (algorithm 1): the number of
// successes of Bernoulli(γ/k), k = 1, 2, …, before the first failure is even with just that probability.
bool BernoulliUpToOne(Uint128 numerator, Uint128 denominator, Random& random) {
  Uint128 k = 1;
  while (random.Below(denominator * k) < numerator) ++k;
  return (k & 1) != 0;
}

// The same for any ratio: e^-γ = (e^-1)^⌊γ⌋ · e^-(γ-⌊γ⌋).
bool Bernoulli(Uint128 numerator, Uint128 denominator, Random& random) {
  for (; numerator > denominator; numerator -= denominator)
    if (!BernoulliUpToOne(1, 1, random)) return false;
  return BernoulliUpToOne(numerator, denominator, random);
}

// The discrete Laplace distribution, P(x) ∝ exp(-|x|/scale) (algorithm 2).
int64_t DrawLaplace(uint64_t scale, Random& random) {
  for (;;) {
    const auto rest = static_cast<uint64_t>(random.Below(scale));
    if (!BernoulliUpToOne(rest, scale, random)) continue;
    uint64_t whole = 0;
    while (BernoulliUpToOne(1, 1, random)) ++whole;
    const auto size = static_cast<int64_t>(rest + scale * whole);
    const bool negative = random.Bit();
    if (negative && size == 0) continue;  // zero has one sign only
    return negative ? -size : size;
  }
}

}  // namespace

int64_t DrawGaussian(uint64_t sigma, Random& random) {
  for (;;) {
    const int64_t candidate = DrawLaplace(sigma, random);
    const int64_t size = candidate < 0 ? -candidate : candidate;
    // Accept with probability exp(-(|x|-σ)²/2σ²): Laplace's density times that is the Gaussian's.
    const int64_t from_sigma = size - static_cast<int64_t>(sigma);
    const Uint128 square = Uint128(Int128{from_sigma} * from_sigma);
    if (Bernoulli(square, Uint128{2} * sigma * sigma, random)) return candidate;
  }
}

Int128 DrawSmudging(Random& random) {
  constexpr uint64_t kFine = uint64_t{1} << 39;
  constexpr uint64_t kCoarse = uint64_t{1} << 34;
  constexpr Int128 kStep = Int128{1} << 36;
  return DrawGaussian(kFine, random) + kStep * DrawGaussian(kCoarse, random);
}

}  // namespace gpusonde::privacy
