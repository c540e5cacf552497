// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/bfv_decryptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/privacy/testing/seeded.h"

namespace gpusonde::privacy {
namespace {

using testing::HasSubstr;

static_assert(!std::is_copy_constructible_v<BfvDecryptor>);

class BfvRelease : public testing::Test {
 protected:
  BfvRelease() {
    const Evaluated a = DrawUniform(random_);
    std::vector<PublicKey> keys;
    for (uint8_t i = 0; i < 3; ++i) {
      std::array<uint8_t, kKeyBytes> secret{};
      secret.fill(i);
      keys.push_back(decryptors_.emplace_back(4, secret).MakePublic(a));
    }
    joint_ = JoinKeys(keys);
  }

  static ReportList List(uint64_t from, uint64_t to) {
    std::vector<ReportList::Entry> entries;
    for (uint64_t device = from; device <= to; ++device) entries.push_back({device, {}});
    return *ReportList::Create(9, 1, entries);
  }

  Ciphertext SumOf(uint64_t reports) {
    const std::vector<uint64_t> message(kDegree, 255);
    Ciphertext sum;
    for (uint64_t i = 0; i < reports; ++i)
      Add(sum, Encrypt(joint_, kReportBits, Plaintext(message), random_));
    return sum;
  }

  Random random_ = Seeded(3);
  std::vector<BfvDecryptor> decryptors_;
  PublicKey joint_;
};

TEST_F(BfvRelease, GivesTheSumWithoutNoise) {
  const Ciphertext sum = SumOf(5);
  std::vector<Polynomial> answers;
  for (BfvDecryptor& decryptor : decryptors_) answers.push_back(*decryptor.Answer(List(1, 5), sum));
  const auto found = Combine(sum.Copy(), answers, kReportBits);
  for (const uint64_t slot : found.values()) ASSERT_EQ(slot, 5u * 255);
}

TEST_F(BfvRelease, ARepeatIsTheSameAnswerAndAnotherSumIsRefused) {
  const Ciphertext sum = SumOf(4);
  const Polynomial one = *decryptors_[0].Answer(List(1, 4), sum);
  const Polynomial again = *decryptors_[0].Answer(List(1, 4), sum);
  EXPECT_TRUE(std::ranges::equal(one.modulo(0), again.modulo(0)));
  EXPECT_THAT(decryptors_[0].Answer(List(1, 4), SumOf(4)).error().message,
              HasSubstr("another sum was answered"));
}

TEST_F(BfvRelease, AReportIsAnsweredForInOneListOnlyAndNeverAlone) {
  const Ciphertext sum = SumOf(4);
  ASSERT_TRUE(decryptors_[0].Answer(List(1, 4), sum).has_value());
  EXPECT_THAT(decryptors_[0].Answer(List(1, 5), sum).error().message,
              HasSubstr("device 1's report of epoch 9 was answered for in another list"));
  EXPECT_THAT(decryptors_[0].Answer(List(7, 7), sum).error().message,
              HasSubstr("1 reports; from 4 to 131072"));
  decryptors_[0].Forget(10);
  EXPECT_TRUE(decryptors_[0].Answer(List(1, 5), sum).has_value());
}

}  // namespace
}  // namespace gpusonde::privacy
