// SPDX-License-Identifier: Apache-2.0
#include "fleet/privacy/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

namespace gpusonde::privacy {
namespace {

std::vector<uint8_t> Bytes(const Wiped<uint8_t>& bytes) {
  return {bytes.values().begin(), bytes.values().end()};
}

std::array<uint8_t, kKeyBytes> Key(uint8_t byte) {
  std::array<uint8_t, kKeyBytes> key;
  key.fill(byte);
  return key;
}

TEST(Random, IsTheStreamOfRfc8439) {
  // Appendix A.1, test vector 1: the key stream's first block for the zero key and nonce.
  Random random = Random::FromKey(Key(0));
  std::array<uint8_t, 8> bytes;
  random.Fill(bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90));
}

TEST(Random, RepeatsItselfAcrossBlocksAndSizes) {
  Random one = Random::FromKey(Key(7));
  Random other = Random::FromKey(Key(7));
  std::vector<uint8_t> whole(10'000);
  one.Fill(whole);
  std::vector<uint8_t> parts(10'000);
  for (size_t at = 0, size = 1; at < parts.size(); at += size, size = std::min(size * 3, parts.size() - at))
    other.Fill(std::span(parts).subspan(at, size));
  EXPECT_EQ(whole, parts);
}

TEST(Random, BelowIsUniformForEveryBound) {
  Random random = Random::FromKey(Key(1));
  std::array<int, 10> counts{};
  for (int i = 0; i < 100'000; ++i) ++counts[static_cast<size_t>(random.Below(10))];
  for (const int count : counts) EXPECT_NEAR(count, 10'000, 5 * 95);  // 5 sd
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.Below(1), 0u);
  // Of a bound just above 2^64 about half the draws are above 2^63.
  const Uint128 bound = (Uint128{1} << 64) + 1;
  int high = 0;
  for (int i = 0; i < 10'000; ++i) high += random.Below(bound) >> 63 != 0;
  EXPECT_NEAR(high, 5'000, 5 * 50);
}

TEST(Derive, SeparatesLabelsFromData) {
  const auto key = Key(3);
  const uint8_t data[] = {'b', 'c'};
  EXPECT_EQ(Bytes(Derive(key, "a", data)), Bytes(Derive(key, "a", data)));
  EXPECT_NE(Bytes(Derive(key, "a", data)), Bytes(Derive(key, "ab", std::span(data).subspan(1))));
  EXPECT_NE(Bytes(Derive(key, "a", data)), Bytes(Derive(Key(4), "a", data)));
}

TEST(Wiped, LeavesNothingBehind) {
  alignas(Wiped<uint64_t>) std::array<std::byte, sizeof(Wiped<uint64_t>)> place;
  auto* secret = new (place.data()) Wiped<uint64_t>(512);
  std::ranges::fill(secret->values(), 0x5ec2e75ec2e75ec2);
  const volatile uint64_t* memory = secret->values().data();
  Wiped<uint64_t> moved = std::move(*secret);
  secret->~Wiped();
  EXPECT_EQ(memory[100], 0x5ec2e75ec2e75ec2) << "moved, not gone";
  sodium_memzero(moved.values().data(), moved.values().size_bytes());
  EXPECT_EQ(memory[100], 0u);
}

}  // namespace
}  // namespace gpusonde::privacy
