// SPDX-License-Identifier: Apache-2.0
#include "model/helper_threads.h"

#include <gtest/gtest.h>

namespace gpusonde::model {
namespace {

// Threads of one program; each sampled once in the stack with its index.
Profile Threads(std::vector<std::string> names, std::vector<std::vector<int32_t>> stacks) {
  Profile profile;
  profile.binaries = {{.name = "libc.so.6"}, {.name = "libcupti.so.12"}, {.name = "train"}};
  for (int32_t binary = 0; binary < 3; ++binary)
    profile.locations.push_back({.kind = FrameKind::kNative, .binary = binary});
  for (std::string& name : names) profile.threads.push_back({.name = std::move(name)});
  profile.stacks = std::move(stacks);
  for (int32_t i = 0; i < static_cast<int32_t>(profile.threads.size()); ++i)
    profile.samples.push_back({.stack = i, .thread = i, .count = 1, .weight_ns = 1});
  return profile;
}

TEST(HelperThreads, AreKnownByTheirNames) {
  const Profile profile = Threads({"gpusonde", "gpusonde-lines", "simgpu-cupti", "gpusonde-hpc", "train"},
                                  {{2}, {2}, {2}, {2}, {}});
  EXPECT_EQ(HelperThreads(profile), (std::vector<bool>{true, true, true, false, false}));
}

TEST(HelperThreads, AreKnownByWhereTheirStacksBegin) {
  // Leaf first: CUPTI's own thread; the program in a callback of CUPTI; the C library alone.
  const Profile profile = Threads({"train", "train", "train"}, {{0, 1, 0}, {1, 2, 0}, {0}});
  EXPECT_EQ(HelperThreads(profile), (std::vector<bool>{true, false, false}));
}

TEST(HelperThreads, GpuTimeIsNeverExcluded) {
  Profile profile = Threads({"gpusonde"}, {{1}});
  profile.type = ProfileType::kGpu;
  EXPECT_EQ(HelperThreads(profile), std::vector<bool>{false});
}

}  // namespace
}  // namespace gpusonde::model
