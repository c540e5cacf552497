// SPDX-License-Identifier: Apache-2.0
#include "fleet/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace gpusonde::fleet {
namespace {

std::array<uint8_t, 32> Beacon(uint8_t byte) {
  std::array<uint8_t, 32> beacon;
  beacon.fill(byte);
  return beacon;
}

TEST(Sampling, IsTheSameForEverybodyAndAnotherForEachInput) {
  const Assignment one = AssignmentOf(7, 100, Beacon(1), 1000, 1000);
  EXPECT_EQ(one, AssignmentOf(7, 100, Beacon(1), 1000, 1000));
  EXPECT_NE(one, AssignmentOf(8, 100, Beacon(1), 1000, 1000));
  EXPECT_NE(one, AssignmentOf(7, 101, Beacon(1), 1000, 1000));
  EXPECT_NE(one, AssignmentOf(7, 100, Beacon(2), 1000, 1000));
}

TEST(Sampling, EveryPlaceIsEquallyLikely) {
  constexpr int kDevices = 50'000;
  std::map<std::pair<uint32_t, uint32_t>, int> counts;
  for (uint64_t device = 0; device < kDevices; ++device) {
    const Assignment assignment = AssignmentOf(device, 3, Beacon(9), 8, 5);
    ASSERT_LT(assignment.group, 8U);
    ASSERT_LT(assignment.page, 5U);
    ++counts[{assignment.group, assignment.page}];
  }
  EXPECT_EQ(counts.size(), 40U);
  for (const auto& [place, count] : counts)
    EXPECT_NEAR(count, kDevices / 40.0, 5 * std::sqrt(kDevices / 40.0));
}

}  // namespace
}  // namespace gpusonde::fleet
