// SPDX-License-Identifier: Apache-2.0
#include "fleet/unknown.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::fleet {
namespace {

Fingerprint DrawUnknown(privacy::Random& random) {
  Fingerprint fingerprint;
  for (int16_t& feature : fingerprint)
    feature = static_cast<int16_t>(static_cast<int>(random.Below(91)) - 45);
  return fingerprint;
}

TEST(Signature, OfLikeFingerprintsIsLikeAndOfOthersIsNot) {
  privacy::Random random = privacy::Seeded(1);
  int like_bits = 0;
  int other_bits = 0;
  constexpr int kDraws = 300;
  for (int i = 0; i < kDraws; ++i) {
    const Fingerprint one = DrawUnknown(random);
    Fingerprint like = one;  // at an angle of about 14°
    for (int16_t& feature : like)
      feature = static_cast<int16_t>(feature + static_cast<int>(random.Below(23)) - 11);
    like_bits += std::popcount(SignatureOf(one) ^ SignatureOf(like));
    other_bits += std::popcount(SignatureOf(one) ^ SignatureOf(DrawUnknown(random)));
    EXPECT_NE(SignatureOf(one), 0u);
    EXPECT_LT(SignatureOf(one), 4096u);
  }
  // 12 bits, each off with probability θ/π: 14°/180° and 1/2; within 5 sd.
  EXPECT_NEAR(like_bits / double{kDraws}, 12 * 0.08, 0.35);
  EXPECT_NEAR(other_bits / double{kDraws}, 6, 0.5);
  EXPECT_EQ(SignatureOf(Fingerprint{}), 4095u) << "ties lie above";
}

TEST(Signature, SpreadingOnesArePeaksAboveTheThreshold) {
  std::vector<double> slots(privacy::kReportSlots);
  slots[0] = 1e6;  // those without
  slots[100] = 255 * 90;
  slots[101] = 255 * 50;  // a neighbour of 100: the same application
  slots[2000] = 255 * 60;
  slots[3000] = 255 * 30;
  EXPECT_THAT(FindSpreading(slots, 40), testing::ElementsAre(Spreading{100, 90}, Spreading{2000, 60}));
}

}  // namespace
}  // namespace gpusonde::fleet
