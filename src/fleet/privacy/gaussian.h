// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/int128.h"
#include "fleet/privacy/random.h"

namespace gpusonde::privacy {

// An exact draw of the discrete Gaussian on the integers, P(x) ∝ exp(-x²/2σ²), with uniform integers and
// comparisons only: the gaps of floating-point numbers would reveal the secret (Mironov 2012). Source:
// Canonne, Kamath, Steinke, "The Discrete Gaussian for Differential Privacy" (2020), algorithms 1-3 with t =
// σ. 0 < sigma <= 2^40. Time depends on the draws: all of a release's noise is drawn before its fixed
// instant.
int64_t DrawGaussian(uint64_t sigma, Random& random);

// The same for σ = 2^70, as D(σ₁) + 2^36·D(σ₂) with σ₁ = 2^39, σ₂ = 2^34: σ₁ is 8 times the coarse step, far
// above the smoothing parameter of 2^36·ℤ at distance 2^-128, so that the sum is a discrete Gaussian but for
// 2^-127 (Micciancio, Walter 2017, theorem 3); its σ is 2^70 (1 + 2^-63).
Int128 DrawSmudging(Random& random);

}  // namespace gpusonde::privacy
