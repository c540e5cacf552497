// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/decryptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>
#include <utility>

namespace gpusonde::privacy {
namespace {

using testing::HasSubstr;

constexpr uint32_t kEpoch = 500;

Salt SaltOf(uint64_t device, uint8_t nth = 0) {
  Salt salt{};
  for (size_t i = 0; i < 8; ++i) salt[i] = static_cast<uint8_t>(device >> (8 * i));
  salt[15] = nth;
  return salt;
}

std::array<uint8_t, kKeyBytes> SecretOf(uint64_t number) {
  std::array<uint8_t, kKeyBytes> secret{};
  for (size_t i = 0; i < 8; ++i) secret[i] = static_cast<uint8_t>(number >> (8 * i));
  secret[31] = 1;
  return secret;
}

std::array<uint8_t, kKeyBytes> OpenOf(uint64_t number) {
  std::array<uint8_t, kKeyBytes> open;
  crypto_scalarmult_base(open.data(), SecretOf(number).data());
  return open;
}

MaskKey KeyOf(uint64_t device, uint64_t decryptor, bool we_are_the_device) {
  return *MaskKey::FromExchange(SecretOf(we_are_the_device ? device : decryptor), OpenOf(device),
                                OpenOf(decryptor), we_are_the_device, device, kEpoch);
}

std::vector<uint32_t> PlainNumbers(const MaskAnswer& answer) {
  return {answer.slots().begin(), answer.slots().end()};
}

// Misuse that doesn't compile. A key can't be copied nor read; a sum can't be made of
// bare numbers, so that it knows how many reports it holds; masks come off once: sum and answers are used up.
template <class Type>
concept Readable = requires(const Type& secret) { secret.values(); } || requires(const Type& secret) {
  secret.data();
} || std::is_convertible_v<Type, std::span<const uint8_t>> || std::is_trivially_copyable_v<Type>;
static_assert(!Readable<MaskKey> && !Readable<MaskDecryptor> && Readable<Wiped<uint8_t>>);
static_assert(!std::is_constructible_v<MaskedSum, std::vector<uint32_t>> &&
              !std::is_constructible_v<MaskedSum, Slots>);
template <class Sum>
concept Subtracts = requires(Sum sum, Slots slots) { sum.Subtract(slots); };
static_assert(!Subtracts<MaskedSum>);
static_assert(!std::is_copy_constructible_v<MaskAnswer> && !std::is_default_constructible_v<MaskAnswer>);
static_assert(!std::is_constructible_v<MaskAnswer, ListHash, std::vector<uint32_t>>);
template <class Sum, class Answers>
concept Unmasks = requires(Sum sum, const ReportList& list, Answers answers) {
  Unmask(std::forward<Sum>(sum), list, std::forward<Answers>(answers));
};
static_assert(Unmasks<MaskedSum&&, std::vector<MaskAnswer>&&>);
static_assert(!Unmasks<MaskedSum&&, std::vector<std::vector<uint32_t>>&&>);
static_assert(!std::is_constructible_v<ReportList> && !std::is_aggregate_v<ReportList>);

// Two decryptors and as many devices as a list needs.
class Release : public testing::Test {
 protected:
  static constexpr uint64_t kDevices = 20;
  static constexpr uint64_t kDecryptors[] = {1'000'001, 1'000'002};

  Release() {
    for (const uint64_t id : kDecryptors) {
      MaskDecryptor::Rules rules;
      rules.min_reports = 10;
      decryptors_.emplace_back(rules, SecretOf(id + 100), kEpoch);
      for (uint64_t device = 1; device <= kDevices; ++device)
        EXPECT_TRUE(decryptors_.back().Enrol(device, KeyOf(device, id, false)).has_value());
    }
  }

  static ReportList List(uint64_t from, uint64_t to, uint32_t epoch = kEpoch, uint8_t nth = 0) {
    std::vector<ReportList::Entry> entries;
    for (uint64_t device = from; device <= to; ++device) entries.push_back({device, SaltOf(device, nth)});
    return *ReportList::Create(epoch, 7, entries);
  }

  static std::vector<uint32_t> Report(uint64_t device, Slots message) {
    std::vector<MaskKey> keys;
    for (const uint64_t id : kDecryptors) keys.push_back(KeyOf(device, id, true));
    return MaskReport(message, keys, {.page = 7, .salt = SaltOf(device)});
  }

  std::string Refusal(const ReportList& list) {
    const auto answer = decryptors_[0].Answer(list);
    return answer.has_value() ? "answered" : answer.error().message;
  }

  std::vector<MaskDecryptor> decryptors_;
};

TEST_F(Release, IsTheSumPlusTheNoiseOfAllDecryptors) {
  MaskedSum sum;
  for (uint64_t device = 1; device <= kDevices; ++device) {
    std::vector<uint32_t> message(kReportSlots);
    message[320] = 200;
    message[329] = 55;
    message[383] = 255;
    sum.Add(Slots(Report(device, Slots(message))));
  }
  const ReportList list = List(1, kDevices);
  std::vector<MaskAnswer> answers;
  for (MaskDecryptor& decryptor : decryptors_) answers.push_back(*decryptor.Answer(list));
  const NoisySum released = *Unmask(std::move(sum), list, std::move(answers));
  EXPECT_EQ(released.reports, kDevices);
  EXPECT_EQ(released.answers, 2u);
  double squares = 0;
  for (size_t slot = 0; slot < kReportSlots; ++slot) {
    const int64_t truth = slot == 320 ? 4000 : slot == 329 ? 1100 : slot == 383 ? 5100 : 0;
    squares += std::pow(static_cast<double>(released.slots[slot] - truth), 2);
  }
  // Two decryptors' noise, independent: σ√2 in each slot; 4,096 of them give it within 2.2 %, twice that is 4
  // sd.
  EXPECT_NEAR(std::sqrt(squares / kReportSlots), kNoiseSigma * std::sqrt(2),
              kNoiseSigma * std::sqrt(2) * 0.045);
}

TEST_F(Release, ARepeatIsTheSameAnswer) {
  const auto answer = decryptors_[0].Answer(List(1, 15));
  EXPECT_EQ(PlainNumbers(*answer), PlainNumbers(*decryptors_[0].Answer(List(1, 15))));
  // From a snapshot taken before it answered: the same noise, so it can't be averaged away.
  MaskDecryptor::Rules rules;
  rules.min_reports = 10;
  MaskDecryptor restored(rules, SecretOf(kDecryptors[0] + 100), kEpoch);
  for (uint64_t device = 1; device <= kDevices; ++device)
    ASSERT_TRUE(restored.Enrol(device, KeyOf(device, kDecryptors[0], false)).has_value());
  EXPECT_EQ(PlainNumbers(*answer), PlainNumbers(*restored.Answer(List(1, 15))));
}

TEST_F(Release, DecryptorsNoiseIsTheirOwn) {
  const ReportList list = List(1, 15);
  EXPECT_NE(PlainNumbers(*decryptors_[0].Answer(list)), PlainNumbers(*decryptors_[1].Answer(list)));
}

// Attacks on the release.
TEST_F(Release, AListOfOneIsRefused) {
  EXPECT_THAT(Refusal(List(3, 3)), HasSubstr("1 reports; at least 10"));
}

TEST_F(Release, AReportIsAnsweredForInOneListOnly) {
  ASSERT_TRUE(decryptors_[0].Answer(List(1, 19)).has_value());
  EXPECT_THAT(Refusal(List(1, 20)),
              HasSubstr("device 1's report of epoch 500 was answered for in another list"));
}

TEST_F(Release, ASecondSaltIsNotASecondChance) {
  ASSERT_TRUE(decryptors_[0].Answer(List(1, 20)).has_value());
  EXPECT_THAT(Refusal(List(1, 20, kEpoch, 1)), HasSubstr("was answered for in another list"));
}

TEST_F(Release, DifferentListsForTwoDecryptorsShowNothing) {
  MaskedSum sum;
  const std::vector<uint32_t> message(kReportSlots, 1);
  for (uint64_t device = 1; device <= 15; ++device) sum.Add(Slots(Report(device, Slots(message))));
  std::vector<MaskAnswer> answers;
  answers.push_back(*decryptors_[0].Answer(List(1, 15)));
  answers.push_back(*decryptors_[1].Answer(List(1, 16)));
  std::vector<uint32_t> left(sum.slots().begin(), sum.slots().end());
  for (const MaskAnswer& answer : answers)
    for (size_t slot = 0; slot < kReportSlots; ++slot) left[slot] -= answer.slots()[slot];
  const auto unmasked = Unmask(std::move(sum), List(1, 15), std::move(answers));
  EXPECT_THAT(unmasked.error().message, HasSubstr("an answer is for another list"));
  // If somebody subtracts them nevertheless, the rest is still masked: uniform in 32 bits, whereas noise
  // alone would stay below 10 σ.
  size_t far = 0;
  for (const uint32_t slot : left) far += std::abs(static_cast<int32_t>(slot)) > int64_t{10 * kNoiseSigma};
  EXPECT_GT(far, kReportSlots * 99 / 100);
}

// Sybils that enrol with a victim's public key and are listed with its salt: if their masks were the
// victim's, 999 times its report less the answers were 999 times its message, far above the noise.
TEST_F(Release, SybilsWithADevicesPublicKeyDoNotMultiplyItsReport) {
  constexpr uint64_t kVictim = 1;
  constexpr uint64_t kSybils = 998;
  std::vector<uint32_t> message(kReportSlots);
  message[320] = message[383] = kReportWeight;
  const std::vector<uint32_t> report = Report(kVictim, Slots(message));
  std::vector<ReportList::Entry> entries = {{kVictim, SaltOf(kVictim)}};
  for (uint64_t id = kDevices + 1; id <= kDevices + kSybils; ++id) entries.push_back({id, SaltOf(kVictim)});
  const ReportList list = *ReportList::Create(kEpoch, 7, entries);
  std::vector<uint32_t> left(kReportSlots);
  for (size_t slot = 0; slot < kReportSlots; ++slot) left[slot] = report[slot] * (kSybils + 1);
  for (size_t i = 0; i < decryptors_.size(); ++i) {
    for (uint64_t id = kDevices + 1; id <= kDevices + kSybils; ++id)
      ASSERT_TRUE(decryptors_[i]
                      .Enrol(id, *MaskKey::FromExchange(SecretOf(kDecryptors[i]), OpenOf(kVictim),
                                                        OpenOf(kDecryptors[i]), false, id, kEpoch))
                      .has_value());
    const auto answer = decryptors_[i].Answer(list);
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    for (size_t slot = 0; slot < kReportSlots; ++slot) left[slot] -= answer->slots()[slot];
  }
  size_t far = 0;
  for (const uint32_t slot : left) far += std::abs(static_cast<int32_t>(slot)) > int64_t{1} << 20;
  EXPECT_GT(far, kReportSlots * 99 / 100) << "what is left is uniform";
}

TEST_F(Release, ADeviceIsInAListOnce) {
  const auto list = ReportList::Create(kEpoch, 7, {{4, SaltOf(4)}, {5, SaltOf(5)}, {4, SaltOf(4, 1)}});
  EXPECT_THAT(list.error().message, HasSubstr("device 4 is in it twice"));
}

TEST_F(Release, StrangersAreRefused) {
  EXPECT_THAT(Refusal(List(10, 21)), HasSubstr("device 21 isn't enrolled"));
}

TEST_F(Release, ForgottenEpochsStayForgotten) {
  ASSERT_TRUE(decryptors_[0].Forget(kEpoch + 1).has_value());
  EXPECT_THAT(Refusal(List(1, 20)), HasSubstr("noise key of epoch 500 is erased; it is of 501 now"));
  // A device that was enrolled an epoch later than the others.
  constexpr uint64_t kLater = kDevices + 1;
  ASSERT_TRUE(decryptors_[1]
                  .Enrol(kLater, *MaskKey::FromExchange(SecretOf(kDecryptors[1]), OpenOf(kLater),
                                                        OpenOf(kDecryptors[1]), false, kLater, kEpoch + 1))
                  .has_value());
  EXPECT_THAT(decryptors_[1].Answer(List(1, kLater)).error().message,
              HasSubstr("keys of epoch 500 are erased; they are of 501 now"));
  EXPECT_EQ(Refusal(List(1, 20, kEpoch + 1)), "answered");
}

TEST_F(Release, NoiseKeysAreRatchetedInOneLeapOrInSteps) {
  const ReportList list = List(1, 20, kEpoch + 3);
  const auto leap = decryptors_[0].Answer(list);
  // The same decryptor that has forgotten epochs meanwhile, and one whose key of the first epoch was kept.
  MaskDecryptor::Rules rules;
  rules.min_reports = 10;
  MaskDecryptor steps(rules, SecretOf(kDecryptors[0] + 100), kEpoch);
  MaskDecryptor kept(rules, SecretOf(kDecryptors[0] + 100), kEpoch + 3);
  for (uint64_t device = 1; device <= kDevices; ++device) {
    ASSERT_TRUE(steps.Enrol(device, KeyOf(device, kDecryptors[0], false)).has_value());
    ASSERT_TRUE(kept.Enrol(device, KeyOf(device, kDecryptors[0], false)).has_value());
  }
  for (uint32_t epoch = kEpoch + 1; epoch <= kEpoch + 3; ++epoch)
    ASSERT_TRUE(steps.Forget(epoch).has_value());
  ASSERT_TRUE(steps.Forget(kEpoch).has_value()) << "nothing to forget";
  EXPECT_EQ(PlainNumbers(*steps.Answer(list)), PlainNumbers(*leap));
  EXPECT_NE(PlainNumbers(*kept.Answer(list)), PlainNumbers(*leap)) << "another epoch's key has other noise";
}

TEST_F(Release, ARefusedListSpendsNothing) {
  // The last device's key can't be ratcheted as far as the others'.
  constexpr uint64_t kLate = kDevices + 1;
  constexpr uint32_t kFar = kEpoch + 366 * 24;
  ASSERT_TRUE(decryptors_[0]
                  .Enrol(kLate, *MaskKey::FromExchange(SecretOf(kDecryptors[0]), OpenOf(kLate),
                                                       OpenOf(kDecryptors[0]), false, kLate, kEpoch - 1))
                  .has_value());
  EXPECT_THAT(Refusal(List(1, kLate, kFar)), HasSubstr("can't be reached from 499"));
  EXPECT_EQ(Refusal(List(1, 20)), "answered") << "keys are of this epoch still";
  EXPECT_EQ(Refusal(List(1, 20, kFar)), "answered") << "reports of the far epoch weren't answered for";
}

TEST_F(Release, ARemovedDeviceGetsNoSecondAnswerByEnrollingAgain) {
  ASSERT_TRUE(decryptors_[0].Answer(List(1, 20)).has_value());
  for (uint64_t device = 1; device <= 19; ++device) {
    decryptors_[0].Remove(device);
    const Status again = decryptors_[0].Enrol(device, KeyOf(device, kDecryptors[0], false));
    ASSERT_FALSE(again.has_value());
    EXPECT_THAT(again.error().message, HasSubstr("was removed; give it another id"));
  }
  EXPECT_THAT(Refusal(List(1, 19)), HasSubstr("device 1 isn't enrolled"));
}

TEST_F(Release, ASpentBudgetIsRefused) {
  MaskDecryptor::Rules rules;
  rules.min_reports = 10;
  rules.epsilon = 1.5;  // one window, not two… whatever Budget says
  const Budget budget(rules.epsilon, rules.delta, Rho(kSensitivity, static_cast<double>(rules.sigma)));
  MaskDecryptor decryptor(rules, SecretOf(5), kEpoch);
  for (uint64_t device = 1; device <= 10; ++device)
    ASSERT_TRUE(decryptor.Enrol(device, KeyOf(device, kDecryptors[0], false)).has_value());
  for (int64_t window = 0; window < budget.windows_left(); ++window)
    ASSERT_TRUE(decryptor.Answer(List(1, 10, kEpoch + static_cast<uint32_t>(window))).has_value()) << window;
  const auto refused = decryptor.Answer(List(1, 10, kEpoch + static_cast<uint32_t>(budget.windows_left())));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("privacy budget of device 1 is spent"));
}

}  // namespace
}  // namespace gpusonde::privacy
