// SPDX-License-Identifier: Apache-2.0
#include "fleet/private_match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::fleet {
namespace {

using privacy::Random;
using privacy::Seeded;

Fingerprint Draw(Random& random) {
  Fingerprint fingerprint;
  double squares = 0;
  std::array<double, kFeatures> values;
  for (double& value : values) {
    value = static_cast<double>(static_cast<int64_t>(random.Below(2001)) - 1000);
    squares += value * value;
  }
  for (size_t i = 0; i < kFeatures; ++i)
    fingerprint[i] = static_cast<int16_t>(std::lround(values[i] * kFingerprintLength / std::sqrt(squares)));
  return fingerprint;
}

Catalog DrawCatalog(size_t applications, Random& random) {
  Catalog catalog;
  for (size_t i = 0; i < applications; ++i) catalog.applications.push_back({std::to_string(i), Draw(random)});
  return catalog;
}

TEST(PrivateMatch, ScoresEqualThoseInPublicMode) {
  Random random = Seeded(1);
  for (const size_t applications : {1, 63, 64, 65, 200}) {
    const Catalog catalog = DrawCatalog(applications, random);
    const PrivateCatalog hidden(catalog);
    // Somebody new, and the largest and smallest score there can be.
    Fingerprint opposite = catalog.applications.back().fingerprint;
    for (int16_t& value : opposite) value = static_cast<int16_t>(-value);
    for (const Fingerprint& fingerprint :
         {Draw(random), catalog.applications.front().fingerprint, opposite}) {
      const PrivateMatcher matcher(random);
      const auto answers = hidden.Answer(matcher.Ask(fingerprint, random), random);
      ASSERT_TRUE(answers.has_value());
      EXPECT_EQ(*matcher.Read(*answers, applications), Scores(catalog, fingerprint)) << applications;
    }
  }
}

// Features between two whole numbers, as many of the larger as the length allows, are all rounded away from
// 0.
TEST(PrivateMatch, TheLargestScoreThatRoundingAllowsFits) {
  constexpr double kShort = 44.5;
  constexpr double kLong = 45.5;
  const double squares = kFingerprintLength * kFingerprintLength - kFeatures * kShort * kShort;
  const auto longer = static_cast<size_t>(squares / (kLong * kLong - kShort * kShort));
  ASSERT_LE(longer, kFeatures);
  Fingerprint fingerprint;
  for (size_t i = 0; i < kFeatures; ++i)
    fingerprint[i] = static_cast<int16_t>(std::lround(i < longer ? kLong : kShort));
  const Catalog catalog{.applications = {{"long", fingerprint}}};
  Random random = Seeded(6);
  const PrivateMatcher matcher(random);
  const auto answers = PrivateCatalog(catalog).Answer(matcher.Ask(fingerprint, random), random);
  ASSERT_TRUE(answers.has_value());
  EXPECT_EQ(*matcher.Read(*answers, 1), Scores(catalog, fingerprint));
}

TEST(PrivateMatch, OnlyTheQueryingDeviceCanDecrypt) {
  Random random = Seeded(2);
  const Catalog catalog = DrawCatalog(64, random);
  const PrivateMatcher matcher(random);
  const PrivateMatcher other(random);
  const auto answers = *PrivateCatalog(catalog).Answer(matcher.Ask(Draw(random), random), random);
  EXPECT_NE(*other.Read(answers, 64), *matcher.Read(answers, 64));
}

TEST(PrivateMatch, AnswersOfAnotherShapeAreRefused) {
  Random random = Seeded(3);
  const Catalog catalog = DrawCatalog(65, random);
  const PrivateMatcher matcher(random);
  auto answers = *PrivateCatalog(catalog).Answer(matcher.Ask(Draw(random), random), random);
  answers.pop_back();
  EXPECT_THAT(matcher.Read(answers, 65).error().message, testing::HasSubstr("64 scores instead of 65"));
  const PrivateQuery empty;
  EXPECT_THAT(PrivateCatalog(catalog).Answer(empty, random).error().message,
              testing::HasSubstr("0 ciphertexts instead of 4"));
}

// With b = 0 and c₁ = 2^85 in place of an encryption, an answer's c₁ is 2^85·f + a·u + e₁: were `a` of the
// device's choice and 0, the fingerprints f were to be read in it.
TEST(PrivateMatch, AMadeUpQueryDoesNotUncoverFingerprints) {
  Random random = Seeded(5);
  const Catalog catalog = DrawCatalog(64, random);
  const PrivateCatalog hidden(catalog);
  PrivateQuery crafted;
  for (size_t part = 0; part < kQueryCiphertexts; ++part) {
    privacy::Polynomial large;
    if (part == 0) privacy::Decompose(Uint128{1} << 85, large, 0);
    crafted.features.push_back({privacy::Evaluated(), privacy::Evaluate(std::move(large))});
  }
  const auto answers = hidden.Answer(crafted, random);
  ASSERT_TRUE(answers.has_value());
  // 2^85 is 2^9 after the switch to 2^30 of 2^106.
  size_t read = 0;
  for (size_t application = 0; application < 64; ++application) {
    for (size_t i = 0; i < kFeaturesPerCiphertext; ++i) {
      const uint32_t value = answers->front().c1[64 * application + 63 - i];
      const int32_t feature = static_cast<int32_t>((value + (1u << 8)) << 2) >> 11;
      read += feature == catalog.applications[application].fingerprint[i];
    }
  }
  EXPECT_LT(read, 64u * 64 / 100) << "no more than by chance";
}

TEST(PrivateMatch, EveryAnswerHasTheSameSizeWhateverWasAsked) {
  Random random = Seeded(4);
  const PrivateCatalog hidden(DrawCatalog(1000, random));
  for (const Fingerprint& fingerprint : {Fingerprint{}, Draw(random)}) {
    const PrivateMatcher matcher(random);
    const auto answers = *hidden.Answer(matcher.Ask(fingerprint, random), random);
    size_t bits = 0;
    for (const privacy::SwitchedAnswer& answer : answers)
      bits += (answer.c0.size() + answer.c1.size()) * privacy::kSwitchedBits;
    EXPECT_EQ(answers.size(), 16u);
    EXPECT_EQ(bits / 8, 249'510u) << "1,000 scores";
  }
}

}  // namespace
}  // namespace gpusonde::fleet
