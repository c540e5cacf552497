// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/ring.h"

#include <algorithm>

namespace gpusonde::privacy {
namespace {

constexpr int kLogDegree = 12;
static_assert(size_t{1} << kLogDegree == kDegree);

constexpr size_t ReverseBits(size_t index) {
  size_t reversed = 0;
  for (int bit = 0; bit < kLogDegree; ++bit) reversed |= ((index >> bit) & 1) << (kLogDegree - 1 - bit);
  return reversed;
}

// Powers of ψ, a root of X^4096 + 1, in the order in which the transforms need them.
class Transform {
 public:
  explicit Transform(const Modulus& modulus) : prime_(modulus.prime()) {
    const uint64_t root = FindRoot(modulus);
    const uint64_t inverse = modulus.Invert(root);
    uint64_t power = 1;
    uint64_t inverse_power = 1;
    for (size_t i = 0; i < kDegree; ++i) {
      forward_[ReverseBits(i)] = Factor(power, modulus);
      backward_[ReverseBits(i)] = Factor(inverse_power, modulus);
      power = modulus.Multiply(power, root);
      inverse_power = modulus.Multiply(inverse_power, inverse);
    }
    shrink_ = Factor(modulus.Invert(kDegree), modulus);
  }

  // Cooley-Tukey, values below 4q throughout, below q in the end (Harvey 2014, algorithm 4).
  void Forward(std::span<uint64_t, kDegree> values) const {
    for (size_t blocks = 1, half = kDegree / 2; half > 0; blocks *= 2, half /= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const Factor factor = forward_[blocks + block];
        uint64_t* const low = &values[2 * half * block];
        for (size_t i = 0; i < half; ++i) {
          const uint64_t a = Below(low[i], 2 * prime_);
          const uint64_t b = factor.Times(low[i + half], prime_);
          low[i] = a + b;
          low[i + half] = a + 2 * prime_ - b;
        }
      }
    }
    for (uint64_t& value : values) value = Below(Below(value, 2 * prime_), prime_);
  }

  // Gentleman-Sande, values below 2q throughout (algorithm 3).
  void Backward(std::span<uint64_t, kDegree> values) const {
    for (size_t blocks = kDegree / 2, half = 1; half < kDegree; blocks /= 2, half *= 2) {
      for (size_t block = 0; block < blocks; ++block) {
        const Factor factor = backward_[blocks + block];
        uint64_t* const low = &values[2 * half * block];
        for (size_t i = 0; i < half; ++i) {
          const uint64_t a = low[i];
          const uint64_t b = low[i + half];
          low[i] = Below(a + b, 2 * prime_);
          low[i + half] = factor.Times(a + 2 * prime_ - b, prime_);
        }
      }
    }
    for (uint64_t& value : values) value = Below(shrink_.Times(value, prime_), prime_);
  }

 private:
  // `a` if below the bound, else a - bound, for a < 2·bound < 2^63.
  static uint64_t Below(uint64_t a, uint64_t bound) {
    const uint64_t less = a - bound;
    return less + (bound & (uint64_t{0} - (less >> 63)));
  }

  // g^((q-1)/8192) is a root if its 4096th power is -1, as it is for half of all g.
  static uint64_t FindRoot(const Modulus& modulus) {
    for (uint64_t g = 2;; ++g) {
      const uint64_t root = modulus.Power(g, (modulus.prime() - 1) / (2 * kDegree));
      if (modulus.Power(root, kDegree) == modulus.prime() - 1) return root;
    }
  }

  uint64_t prime_;
  std::array<Factor, kDegree> forward_;
  std::array<Factor, kDegree> backward_;
  Factor shrink_;  // 1/4096
};

const Transform& TransformOf(size_t prime) {
  static const std::array<Transform, kPrimes> transforms = {Transform(kModuli[0]), Transform(kModuli[1])};
  return transforms[prime];
}

// floor(2^168 / q): by long division, as 2^168 doesn't fit.
constexpr uint64_t kReciprocal = [] {
  Uint128 rest = 1;
  uint64_t quotient = 0;
  for (int bit = 0; bit < 168; ++bit) {
    rest <<= 1;
    quotient <<= 1;
    if (rest >= kQ) {
      rest -= kQ;
      quotient |= 1;
    }
  }
  return quotient;
}();

}  // namespace

template <class Form>
Element<Form> Element<Form>::Copy() const {
  Element copy;
  std::ranges::copy(residues_.values(), copy.residues_.values().begin());
  return copy;
}

template <class Form>
Element<Form>& Element<Form>::operator+=(const Element& other) {
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    const auto to = modulo(prime);
    const auto from = other.modulo(prime);
    for (size_t i = 0; i < kDegree; ++i) to[i] = kModuli[prime].Add(to[i], from[i]);
  }
  return *this;
}

template <class Form>
Element<Form>& Element<Form>::operator-=(const Element& other) {
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    const auto to = modulo(prime);
    const auto from = other.modulo(prime);
    for (size_t i = 0; i < kDegree; ++i) to[i] = kModuli[prime].Subtract(to[i], from[i]);
  }
  return *this;
}

template <class Form>
void Element<Form>::Negate() {
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (uint64_t& value : modulo(prime)) value = kModuli[prime].Negate(value);
}

template class Element<CoefficientForm>;
template class Element<ValueForm>;

Evaluated Evaluate(Polynomial polynomial) {
  Evaluated values;
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    std::ranges::copy(polynomial.modulo(prime), values.modulo(prime).begin());
    TransformOf(prime).Forward(values.modulo(prime));
  }
  return values;
}

Polynomial Interpolate(Evaluated values) {
  Polynomial polynomial;
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    std::ranges::copy(values.modulo(prime), polynomial.modulo(prime).begin());
    TransformOf(prime).Backward(polynomial.modulo(prime));
  }
  return polynomial;
}

Evaluated operator*(const Evaluated& a, const Evaluated& b) {
  Evaluated product;
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (size_t i = 0; i < kDegree; ++i)
      product.modulo(prime)[i] = kModuli[prime].Multiply(a.modulo(prime)[i], b.modulo(prime)[i]);
  return product;
}

Polynomial FromSigned(std::span<const int64_t, kDegree> coefficients) {
  Polynomial polynomial;
  for (size_t prime = 0; prime < kPrimes; ++prime)
    for (size_t i = 0; i < kDegree; ++i)
      polynomial.modulo(prime)[i] = kModuli[prime].FromSigned(coefficients[i]);
  return polynomial;
}

// x = x₁ + q₁·((x₂ - x₁)/q₁ mod q₂), the residue x₁ taken modulo q₂ first; q₁ > q₂ by 65,536, so that once is
// enough.
Uint128 Compose(const Polynomial& polynomial, size_t index) {
  static constexpr uint64_t kInverse = kModuli[1].Invert(kModuli[0].prime() - kModuli[1].prime());
  const uint64_t first = polynomial.modulo(0)[index];
  const uint64_t difference = kModuli[1].Subtract(polynomial.modulo(1)[index], kModuli[1].Once(first));
  return first + Uint128{kModuli[0].prime()} * kModuli[1].Multiply(difference, kInverse);
}

void Decompose(Uint128 coefficient, Polynomial& polynomial, size_t index) {
  for (size_t prime = 0; prime < kPrimes; ++prime)
    polynomial.modulo(prime)[index] = kModuli[prime].Reduce(coefficient);
}

// x·⌊2^168/q⌋ = 2^168·x/q less at most x < 2^106: off by 2^-62 relative to 2^168, by 2^-22 after the shift.
uint64_t ScaleToBits(Uint128 x, int bits) {
  const Uint128 low = Uint128{static_cast<uint64_t>(x)} * kReciprocal;
  const Uint128 high = Uint128{static_cast<uint64_t>(x >> 64)} * kReciprocal + (low >> 64);  // of 2^64
  const auto doubled = static_cast<uint64_t>(high >> (168 - 64 - bits - 1));
  return ((doubled + 1) >> 1) & ((uint64_t{1} << bits) - 1);
}

// q = Q·2^bits + R: round(q·m/2^bits) = Q·m + round(R·m/2^bits).
ScalerToQ::ScalerToQ(int bits) : bits_(bits), rest_(static_cast<uint64_t>(kQ & ((Uint128{1} << bits) - 1))) {
  for (size_t prime = 0; prime < kPrimes; ++prime)
    whole_[prime] = Factor(kModuli[prime].Reduce(kQ >> bits), kModuli[prime]);
}

std::array<uint64_t, kPrimes> ScalerToQ::operator()(uint64_t m) const {
  const auto rounded = static_cast<uint64_t>((Uint128{rest_} * m + (Uint128{1} << (bits_ - 1))) >> bits_);
  std::array<uint64_t, kPrimes> residues;
  for (size_t prime = 0; prime < kPrimes; ++prime) {
    const Modulus& modulus = kModuli[prime];
    residues[prime] = modulus.Add(modulus.Once(whole_[prime].Times(m, modulus.prime())), rounded);
  }
  return residues;
}

}  // namespace gpusonde::privacy
