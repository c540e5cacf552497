// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/masks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace gpusonde::privacy {
namespace {

static_assert(!std::is_copy_constructible_v<MaskKey> && !std::is_copy_assignable_v<MaskKey>);

struct KeyPair {
  explicit KeyPair(uint8_t seed) {
    secret.fill(seed);
    crypto_scalarmult_base(open.data(), secret.data());
  }
  std::array<uint8_t, kKeyBytes> secret;
  std::array<uint8_t, kKeyBytes> open;
};

constexpr uint64_t kDevice = 11;

MaskKey DeviceKey(uint32_t epoch = 100) {
  const KeyPair device(1);
  const KeyPair decryptor(2);
  return *MaskKey::FromExchange(device.secret, device.open, decryptor.open, true, kDevice, epoch);
}

MaskKey DecryptorKey(uint32_t epoch = 100) {
  const KeyPair device(1);
  const KeyPair decryptor(2);
  return *MaskKey::FromExchange(decryptor.secret, device.open, decryptor.open, false, kDevice, epoch);
}

std::vector<uint32_t> MaskOf(const MaskKey& key, const MaskUse& use) {
  std::vector<uint32_t> slots(kReportSlots);
  key.Add(use, std::span<uint32_t, kReportSlots>(slots));
  return slots;
}

const MaskUse kUse{.page = 3, .salt = {1, 2, 3}};

TEST(MaskKey, BothSidesOfAnExchangeAgree) {
  EXPECT_EQ(MaskOf(DeviceKey(), kUse), MaskOf(DecryptorKey(), kUse));
}

TEST(MaskKey, APublicKeyOfSmallOrderIsRefused) {
  const KeyPair device(1);
  const std::array<uint8_t, kKeyBytes> zero{};
  const auto key = MaskKey::FromExchange(device.secret, device.open, zero, true, kDevice, 0);
  ASSERT_FALSE(key.has_value());
  EXPECT_EQ(key.error().code, ErrorCode::kInvalidArgument);
}

TEST(MaskKey, EachUseHasItsOwnMask) {
  const MaskKey key = DeviceKey();
  const auto mask = MaskOf(key, kUse);
  EXPECT_NE(mask, MaskOf(key, {.page = 4, .salt = kUse.salt}));
  EXPECT_NE(mask, MaskOf(key, {.page = 3, .salt = {1, 2, 4}}));
  EXPECT_NE(mask, MaskOf(DeviceKey(101), kUse));
  MaskKey later = DeviceKey();
  ASSERT_TRUE(later.AdvanceTo(101).has_value());
  EXPECT_NE(mask, MaskOf(later, kUse));
}

TEST(MaskKey, RatchetsForwardOnly) {
  MaskKey device = DeviceKey();
  MaskKey decryptor = DecryptorKey();
  ASSERT_TRUE(device.AdvanceTo(150).has_value());
  for (uint32_t epoch = 101; epoch <= 150; ++epoch) ASSERT_TRUE(decryptor.AdvanceTo(epoch).has_value());
  EXPECT_EQ(MaskOf(device, kUse), MaskOf(decryptor, kUse)) << "in one leap or in steps";
  EXPECT_FALSE(device.AdvanceTo(149).has_value());
  EXPECT_FALSE(device.AdvanceTo(150 + 366 * 24 + 1).has_value()) << "not a leap that takes for ever";
  EXPECT_EQ(device.epoch(), 150u);
}

TEST(MaskKey, MasksLookUniform) {
  const auto mask = MaskOf(DeviceKey(), kUse);
  double sum = 0;
  for (const uint32_t slot : mask) sum += std::ldexp(slot, -32);
  EXPECT_NEAR(sum / kReportSlots, 0.5, 5 / std::sqrt(12.0 * kReportSlots));
}

TEST(MaskedSum, LessTheMasksIsTheSumOfTheMessages) {
  std::vector<MaskKey> keys;
  keys.push_back(DeviceKey());
  keys.push_back(DeviceKey(100));
  MaskedSum one;
  MaskedSum other;
  std::vector<uint32_t> masks(kReportSlots);
  std::vector<uint32_t> expected(kReportSlots);
  for (uint8_t i = 0; i < 10; ++i) {
    std::vector<uint32_t> message(kReportSlots);
    message[i] = 255;
    message[kReportSlots - 1] = i;
    for (size_t slot = 0; slot < kReportSlots; ++slot) expected[slot] += message[slot];
    const MaskUse use{.page = 3, .salt = {i}};
    const auto report = MaskReport(Slots(message), keys, use);
    EXPECT_LT(std::ranges::count(report, 0u), 3) << "nothing of it shows";
    (i % 2 == 0 ? one : other).Add(Slots(report));
    for (const MaskKey& key : keys) key.Add(use, std::span<uint32_t, kReportSlots>(masks));
  }
  one.Add(other);
  EXPECT_EQ(one.reports(), 10u);
  for (size_t slot = 0; slot < kReportSlots; ++slot)
    ASSERT_EQ(one.slots()[slot] - masks[slot], expected[slot]) << slot;
}

}  // namespace
}  // namespace gpusonde::privacy
