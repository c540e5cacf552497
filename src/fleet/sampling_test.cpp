// SPDX-License-Identifier: Apache-2.0
#include "fleet/sampling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

namespace gpusonde::fleet {
namespace {

Beacon BeaconOf(uint8_t byte) {
  Beacon beacon;
  beacon.fill(byte);
  return beacon;
}

TEST(Sampling, IsDeterministicAndDiffersForEachInput) {
  const Layout layout{.groups = 1000, .pages = 1000, .cohorts = 1000};
  const Assignment one = AssignmentOf(7, 100, BeaconOf(1), layout);
  EXPECT_EQ(one, AssignmentOf(7, 100, BeaconOf(1), layout));
  EXPECT_NE(one, AssignmentOf(8, 100, BeaconOf(1), layout));
  EXPECT_NE(one, AssignmentOf(7, 101, BeaconOf(1), layout));
  EXPECT_NE(one, AssignmentOf(7, 100, BeaconOf(2), layout));
}

TEST(Sampling, EveryPlaceAndCohortIsEquallyLikely) {
  constexpr int kDevices = 50'000;
  const Layout layout{.groups = 8, .pages = 3, .cohorts = 2};
  std::map<std::pair<uint32_t, uint32_t>, int> counts;
  for (uint64_t device = 0; device < kDevices; ++device) {
    const Assignment assignment = AssignmentOf(device, 3, BeaconOf(9), layout);
    ASSERT_LT(assignment.place, 25U);
    if (assignment.place != layout.signatures_place()) {
      ASSERT_EQ(assignment.place, assignment.page * 8 + assignment.group);
    }
    ++counts[{assignment.place, assignment.cohort}];
  }
  EXPECT_EQ(counts.size(), 50U);
  for (const auto& [place, count] : counts)
    EXPECT_NEAR(count, kDevices / 50.0, 5 * std::sqrt(kDevices / 50.0));
}

}  // namespace
}  // namespace gpusonde::fleet
