// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/ring.h"

#include <gtest/gtest.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <vector>

#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::privacy {
namespace {

using Big = boost::multiprecision::cpp_int;  // the reference

Big ToBig(Uint128 value) {
  return (Big(static_cast<uint64_t>(value >> 64)) << 64) + static_cast<uint64_t>(value);
}

Polynomial RandomPolynomial(Random& random) {
  Polynomial polynomial;
  for (size_t i = 0; i < kDegree; ++i) Decompose(random.Below(kQ), polynomial, i);
  return polynomial;
}

TEST(Modulus, AgreesWithBigIntegers) {
  Random random = Seeded(1);
  for (const Modulus& modulus : kModuli) {
    const uint64_t q = modulus.prime();
    const uint64_t edges[] = {0, 1, 2, q / 2, q - 2, q - 1};
    std::vector<uint64_t> numbers(std::begin(edges), std::end(edges));
    for (int i = 0; i < 200; ++i) numbers.push_back(static_cast<uint64_t>(random.Below(q)));
    for (const uint64_t a : numbers) {
      EXPECT_EQ(modulus.Negate(a), (q - a) % q);
      for (const uint64_t b : numbers) {
        ASSERT_EQ(modulus.Multiply(a, b), static_cast<uint64_t>(Big(a) * b % q));
        ASSERT_EQ(modulus.Add(a, b), (a + b) % q);
        ASSERT_EQ(modulus.Subtract(a, b), (a + q - b) % q);
        ASSERT_EQ(Factor(b, modulus).Times(a, q) % q, static_cast<uint64_t>(Big(a) * b % q));
      }
      if (a == 0) continue;
      EXPECT_EQ(modulus.Multiply(a, modulus.Invert(a)), 1u);
    }
    EXPECT_EQ(modulus.Reduce((Uint128{1} << 106) - 1), static_cast<uint64_t>(((Big(1) << 106) - 1) % q));
    EXPECT_EQ(modulus.FromSigned(-5), q - 5);
    EXPECT_EQ(modulus.FromSigned(5), 5u);
  }
}

TEST(Ring, PrimesAreWhatTheDesignSays) {
  EXPECT_EQ(kModuli[0].prime(), 9007199254429697u);
  EXPECT_EQ(kModuli[1].prime(), 9007199254364161u);
  EXPECT_LT(kQ, Uint128{1} << 106);
  for (const Modulus& modulus : kModuli) EXPECT_EQ(modulus.prime() % 16384, 1u);
}

TEST(Ring, FormsAreInverse) {
  Random random = Seeded(2);
  const Polynomial polynomial = RandomPolynomial(random);
  const Polynomial again = Interpolate(Evaluate(polynomial.Copy()));
  for (size_t prime = 0; prime < kPrimes; ++prime)
    EXPECT_TRUE(std::ranges::equal(polynomial.modulo(prime), again.modulo(prime)));
}

TEST(Ring, ProductsAgreeWithSchoolbooks) {
  Random random = Seeded(3);
  const Polynomial a = RandomPolynomial(random);
  Polynomial b;  // a few coefficients, so that the reference takes a moment only; both ends among them
  const size_t places[] = {0, 1, 77, 2048, 4095};
  for (const size_t place : places) Decompose(random.Below(kQ), b, place);
  const Polynomial product = Interpolate(Evaluate(a.Copy()) * Evaluate(b.Copy()));
  const Big q = ToBig(kQ);
  std::vector<Big> expected(kDegree);
  for (const size_t place : places) {
    const Big factor = ToBig(Compose(b, place));
    for (size_t i = 0; i < kDegree; ++i) {
      const Big term = ToBig(Compose(a, i)) * factor;
      if (const size_t to = i + place; to < kDegree)
        expected[to] += term;
      else
        expected[to - kDegree] += q * q - term;  // X^4096 = -1
    }
  }
  for (size_t i = 0; i < kDegree; ++i) ASSERT_EQ(ToBig(Compose(product, i)), expected[i] % q) << i;
}

TEST(Ring, ComposeIsTheInverseOfDecompose) {
  Random random = Seeded(4);
  Polynomial polynomial;
  const Uint128 edges[] = {0,      1,     kModuli[0].prime() - 1, kModuli[0].prime(), kModuli[1].prime(),
                           kQ / 2, kQ - 1};
  for (const Uint128 value : edges) {
    Decompose(value, polynomial, 5);
    EXPECT_TRUE(Compose(polynomial, 5) == value);
  }
  for (int i = 0; i < 10'000; ++i) {
    const Uint128 value = random.Below(kQ);
    Decompose(value, polynomial, 0);
    ASSERT_TRUE(Compose(polynomial, 0) == value);
  }
}

TEST(Ring, ScalingAgreesWithBigIntegers) {
  Random random = Seeded(5);
  const Big q = ToBig(kQ);
  for (const int bits : {1, 20, 28, 30, 40}) {
    const Big t = Big(1) << bits;
    for (int i = 0; i < 2'000; ++i) {
      const Uint128 x = i == 0 ? 0 : i == 1 ? kQ - 1 : random.Below(kQ);
      const Big scaled = t * ToBig(x);
      ASSERT_EQ(ScaleToBits(x, bits), static_cast<uint64_t>((2 * scaled + q) / (2 * q) % t)) << bits;

      const uint64_t m = i == 0   ? 0
                         : i == 1 ? (uint64_t{1} << bits) - 1
                                  : static_cast<uint64_t>(random.Below(Uint128{1} << bits));
      const Big up = (2 * q * m + t) / (2 * t);
      const auto residues = ScalerToQ(bits)(m);
      for (size_t prime = 0; prime < kPrimes; ++prime)
        ASSERT_EQ(residues[prime], static_cast<uint64_t>(up % kModuli[prime].prime())) << bits << " " << m;
    }
  }
}

}  // namespace
}  // namespace gpusonde::privacy
