// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/int128.h"
#include "fleet/privacy/modulus.h"
#include "fleet/privacy/wiped.h"

// The ring of the BFV scheme: polynomials modulo X^4096 + 1 whose coefficients are numbers modulo q = q₁·q₂,
// represented by their residues modulo the two primes. Both are 1 modulo 8192, so a polynomial is determined
// by its values at the 4,096 roots of X^4096 + 1, where multiplication is pointwise.
namespace gpusonde::privacy {

inline constexpr size_t kDegree = 4096;
inline constexpr std::array<Modulus, 2> kModuli = {Modulus(9007199254429697), Modulus(9007199254364161)};
inline constexpr size_t kPrimes = kModuli.size();
inline constexpr Uint128 kQ = Uint128{kModuli[0].prime()} * kModuli[1].prime();

// An element in one of its two forms, which are different types. Wiped on destruction, as most are secret at
// some point. Initially zero. Copied only by Copy().
template <class Form>
class Element {
 public:
  Element() : residues_(kPrimes * kDegree) {}

  Element Copy() const;
  std::span<uint64_t, kDegree> modulo(size_t prime) {
    return std::span<uint64_t, kDegree>(residues_.values().subspan(prime * kDegree, kDegree));
  }
  std::span<const uint64_t, kDegree> modulo(size_t prime) const {
    return std::span<const uint64_t, kDegree>(residues_.values().subspan(prime * kDegree, kDegree));
  }

  Element& operator+=(const Element& other);
  Element& operator-=(const Element& other);
  void Negate();

 private:
  Wiped<uint64_t> residues_;
};

using Polynomial = Element<struct CoefficientForm>;  // coefficients, lowest degree first
using Evaluated = Element<struct ValueForm>;         // values at the roots, in bit-reversed order

// The same element in the other form: number-theoretic transforms of Harvey's kind, in constant time.
Evaluated Evaluate(Polynomial polynomial);
Polynomial Interpolate(Evaluated values);

Evaluated operator*(const Evaluated& a, const Evaluated& b);

// From signed coefficients, |c| < 2^52.
Polynomial FromSigned(std::span<const int64_t, kDegree> coefficients);

// A coefficient as a number in [0, q).
Uint128 Compose(const Polynomial& polynomial, size_t index);
// The inverse, for any number below q.
void Decompose(Uint128 coefficient, Polynomial& polynomial, size_t index);

// round(2^bits · x / q) modulo 2^bits, for x < q and bits <= 40: decoding, and switching to a smaller
// modulus. Off by one where 2^bits·x/q is within 2^-20 of a half. Without branches.
uint64_t ScaleToBits(Uint128 x, int bits);

// round(q · m / 2^bits) modulo each prime, for m < 2^bits, bits <= 40: encoding. Without branches.
class ScalerToQ {
 public:
  explicit ScalerToQ(int bits);
  std::array<uint64_t, kPrimes> operator()(uint64_t m) const;

 private:
  int bits_;
  uint64_t rest_;                      // q modulo 2^bits
  std::array<Factor, kPrimes> whole_;  // ⌊q/2^bits⌋
};

}  // namespace gpusonde::privacy
