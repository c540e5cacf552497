// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/int128.h"

namespace gpusonde::privacy {

// Arithmetic modulo a prime q of exactly 53 bits, without branches or divisions. Operands are below q unless
// said otherwise.
class Modulus {
 public:
  static constexpr int kBits = 53;

  constexpr explicit Modulus(uint64_t prime)
      : prime_(prime), ratio_(static_cast<uint64_t>((Uint128{1} << (2 * kBits)) / prime)) {}

  constexpr uint64_t prime() const { return prime_; }

  // `a` if it is below q, else a - q, for a < 2q.
  constexpr uint64_t Once(uint64_t a) const {
    const uint64_t less = a - prime_;
    return less + (prime_ & (uint64_t{0} - (less >> 63)));
  }
  constexpr uint64_t Add(uint64_t a, uint64_t b) const { return Once(a + b); }
  constexpr uint64_t Subtract(uint64_t a, uint64_t b) const { return Once(a + prime_ - b); }
  constexpr uint64_t Negate(uint64_t a) const { return Once(prime_ - a); }

  // Any number below 2^106: Barrett, Handbook of Applied Cryptography 14.42 with b = 2, k = 53: off by less
  // than 3q.
  constexpr uint64_t Reduce(Uint128 a) const {
    const auto quotient =
        static_cast<uint64_t>((Uint128{static_cast<uint64_t>(a >> (kBits - 1))} * ratio_) >> (kBits + 1));
    return Once(Once(static_cast<uint64_t>(a) - quotient * prime_));
  }
  constexpr uint64_t Multiply(uint64_t a, uint64_t b) const { return Reduce(Uint128{a} * b); }

  constexpr uint64_t Power(uint64_t base, uint64_t exponent) const {
    uint64_t result = 1;
    for (; exponent != 0; exponent >>= 1, base = Multiply(base, base))
      if ((exponent & 1) != 0) result = Multiply(result, base);
    return result;
  }
  constexpr uint64_t Invert(uint64_t a) const { return Power(a, prime_ - 2); }

  // Small signed numbers, |a| < q.
  constexpr uint64_t FromSigned(int64_t a) const {
    return static_cast<uint64_t>(a) + (prime_ & static_cast<uint64_t>(a >> 63));
  }

 private:
  uint64_t prime_;
  uint64_t ratio_;  // floor(2^106 / q)
};

// A constant factor with its quotient prepared: multiplies any 64-bit number, with a result below 2q. Source:
// Shoup's trick, as in Harvey, "Faster arithmetic for number-theoretic transforms" (2014), section 3.
struct Factor {
  uint64_t value = 0;
  uint64_t quotient = 0;  // floor(value · 2^64 / q)

  Factor() = default;
  constexpr Factor(uint64_t of, const Modulus& modulus)
      : value(of), quotient(static_cast<uint64_t>((Uint128{of} << 64) / modulus.prime())) {}

  constexpr uint64_t Times(uint64_t a, uint64_t prime) const {
    const auto whole = static_cast<uint64_t>((Uint128{a} * quotient) >> 64);
    return a * value - whole * prime;
  }
};

}  // namespace gpusonde::privacy
