// SPDX-License-Identifier: Apache-2.0
#include "model/profile.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace gpusonde::model {
namespace {

TEST(Profile, SumsOfUntrustedValuesFit) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
  Profile profile{.samples = {{.count = 3, .weight_ns = -5},
                              {.count = kMin, .weight_ns = 7},
                              {.count = kMax, .weight_ns = kMax},
                              {.count = 1, .weight_ns = kMax}}};
  BoundSums(profile);
  EXPECT_EQ(profile.samples[0].count, 3) << "plausible values stay";
  EXPECT_EQ(profile.samples[1].weight_ns, 7);
  EXPECT_EQ(profile.samples[3].count, 1) << "also behind implausible ones";
  uint64_t count = 0;
  uint64_t weight_ns = 0;
  for (const Profile::Sample& sample : profile.samples) {
    EXPECT_GE(sample.count, 0);
    EXPECT_GE(sample.weight_ns, 0);
    count += static_cast<uint64_t>(sample.count);
    weight_ns += static_cast<uint64_t>(sample.weight_ns);
  }
  EXPECT_LE(count, uint64_t{1} << 62);
  EXPECT_LE(weight_ns, uint64_t{1} << 62);
}

}  // namespace
}  // namespace gpusonde::model
