// SPDX-License-Identifier: Apache-2.0
#include "unwind/go_frames.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace gpusonde::unwind {
namespace {

// A table as Go 1.19 writes it, of a function at 0x401000 of 0x40 bytes with these stack depths.
std::vector<std::byte> TableOf(const std::vector<uint8_t>& depths) {
  constexpr uint64_t kNames = 80, kDepths = 96, kFunctions = 128;
  std::vector<std::byte> bytes(256);
  const auto put = [&bytes](size_t place, uint64_t value, size_t count) {
    std::memcpy(&bytes[place], &value, count);
  };
  put(0, 0xFFFFFFF0, 4);
  put(6, 1, 1);
  put(7, 8, 1);
  put(8, 1, 8);
  put(24, 0x401000, 8);
  put(32, kNames, 8);
  put(56, kDepths, 8);
  put(64, kFunctions, 8);
  constexpr std::string_view kName = "main.main";
  std::memcpy(&bytes[kNames], kName.data(), kName.size());
  // The first of a list of depths can't be at its begin, which says that there is none.
  std::memcpy(&bytes[kDepths + 1], depths.data(), depths.size());
  put(kFunctions + 4, 12, 4);
  put(kFunctions + 8, 0x40, 4);
  put(kFunctions + 12 + 16, 1, 4);
  return bytes;
}

TEST(GoFrames, ADepthBeyondAnyStackIsNoFrame) {
  // 0 for 4 bytes, then 2^31 - 1 for 32, and 16 less for the rest: zigzag of +1, +(2^31 - 1), -16.
  const std::vector<std::byte> bytes = TableOf({2, 4, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F, 32, 31, 28});
  const auto table = symbols::GoTable::Parse(bytes, 0);
  ASSERT_TRUE(table.has_value());
  const GoFrames frames(*table, [](uint64_t, uint64_t) { return std::vector<std::byte>(); });
  ASSERT_EQ(frames.functions().size(), 1u);
  std::vector<std::pair<uint8_t, int32_t>> rules;
  EXPECT_TRUE(frames.Run(frames.functions().front(), [&rules](uint64_t, const Rule& rule) {
    rules.emplace_back(rule.cfa, rule.cfa_offset);
  }));
  const std::vector<std::pair<uint8_t, int32_t>> expected = {
      {GPUSONDE_CFA_REGISTER, 8}, {GPUSONDE_CFA_NONE, 0}, {GPUSONDE_CFA_REGISTER, INT32_MAX - 8}};
  EXPECT_EQ(rules, expected);
}

}  // namespace
}  // namespace gpusonde::unwind
