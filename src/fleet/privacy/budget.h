// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

// What releases cost, in zero-concentrated differential privacy, which adds up: ρ of several releases is the
// sum of theirs. Source: Bun, Steinke 2016; Canonne, Kamath, Steinke 2020 (discrete Gaussian, and proposition
// 12).
namespace gpusonde::privacy {

// A report's histogram and its contributor slot hold 255 each; replacing one report changes both by at most
// 255·√2: √(2·255² + 2·255²) = √4·255.
inline constexpr double kSensitivity = 510;
// ⌈6.51 · 510⌉: ε < 1 at δ = 1e-9 for one window.
inline constexpr uint64_t kNoiseSigma = 3321;

// ρ of one release: sensitivity²/(2 σ²).
double Rho(double sensitivity, double sigma);

// The smallest ε for which ρ-zCDP implies (ε, δ)-DP by proposition 12: δ = min over α > 1 of
// exp((α-1)(αρ-ε)) / (α-1) · (1-1/α)^α. 0 < delta < 1.
double Epsilon(double rho, double delta);

// How many windows one device may still take part in before its budget is spent. Not thread-safe.
class Budget {
 public:
  // As many windows as fit into `epsilon` at `delta`, each costing `rho`.
  Budget(double epsilon, double delta, double rho);

  // What is left of an earlier one.
  explicit Budget(int64_t windows_left) : windows_left_(windows_left) {}

  // Spends one window. kExhausted… once spent: the release must be refused.
  Status Spend();
  int64_t windows_left() const { return windows_left_; }

 private:
  int64_t windows_left_;
};

}  // namespace gpusonde::privacy
