// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/full_queue.h"

#include <gtest/gtest.h>

namespace gpusonde::analyze {
namespace {

// Launches of a host that is ahead of its GPU: kernels of 100 µs, of which `waiting` are queued when the next
// call begins; as on a full queue, this takes as long as a kernel.
FullQueue Follow(int64_t waiting, int64_t call_ns, uint32_t streams = 1, int64_t kernels_a_call = 1) {
  FullQueueFollower follower;
  constexpr int64_t kKernelNs = 100'000;
  for (int64_t i = 0; i < 3'000; ++i) {
    const int64_t start_ns = i * kKernelNs;
    const int64_t call = i / kernels_a_call;
    const int64_t call_ns_at = (call * kernels_a_call - waiting + 1) * kKernelNs - 50'000;
    follower.Add({.gpu = {.start_ns = start_ns,
                          .end_ns = start_ns + kKernelNs,
                          .stream = static_cast<uint32_t>(i) % streams,
                          .work = importers::GpuWork::kKernel},
                  .call_start_ns = call_ns_at,
                  .call_end_ns = call_ns_at + call_ns,
                  .has_call = 1});
  }
  return std::move(follower).Finish();
}

TEST(FullQueue, CallsAreBlockedThatTakeLongWhileAThousandLaunchesWait) {
  const FullQueue full = Follow(1'010, 90'000);
  EXPECT_EQ(full.count, 2'000);
  EXPECT_EQ(full.blocked_ns, 2'000 * 90'000);
  ASSERT_EQ(full.longest.size(), FullQueue::kLongest);
  EXPECT_EQ(full.longest[0].end_ns - full.longest[0].begin_ns, 90'000);
  EXPECT_LT(full.longest[0].begin_ns, full.longest[1].begin_ns);
}

TEST(FullQueue, ShortQueuesAndShortCallsAreNotBlocked) {
  EXPECT_EQ(Follow(900, 90'000).count, 0);
  EXPECT_EQ(Follow(1'010, 10'000).count, 0);
}

TEST(FullQueue, StreamsHaveQueuesOfTheirOwn) { EXPECT_EQ(Follow(1'500, 90'000, 2).count, 0); }

TEST(FullQueue, AGraphOfManyKernelsIsOneLaunch) { EXPECT_EQ(Follow(1'200, 90'000, 1, 100).count, 0); }

}  // namespace
}  // namespace gpusonde::analyze
