// SPDX-License-Identifier: Apache-2.0
#include "store/queries/launch_threads.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/tables/api_calls.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/ranges.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Id128 kLauncher{5, 1};
constexpr Id128 kLaunchGpu{6, 0}, kSecondLaunchGpu{6, 1};

class LaunchThreads : public MemoryStoreTest {
 protected:
  static model::Kernel Kernel(int64_t correlation, int64_t start_ns, int64_t end_ns,
                              Id128 device = kLaunchGpu) {
    return {.process = kLauncher,
            .device = device,
            .session = 1,
            .correlation = correlation,
            .stream = 7,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .name = "gemm"};
  }
  static model::ApiCall Call(int64_t correlation, int32_t tid, int64_t start_ns, int64_t end_ns,
                             const std::string& name = "cudaLaunchKernel") {
    return {.process = kLauncher,
            .tid = tid,
            .session = 1,
            .correlation = correlation,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .domain = "cuda_runtime",
            .name = name,
            .probability = 1};
  }
  static model::Range Range(int32_t tid, int64_t start_ns, int64_t end_ns, const std::string& name,
                            const std::string& kind = "operator") {
    return {.process = kLauncher,
            .tid = tid,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .kind = kind,
            .domain = "",
            .name = name};
  }

  // "range/call time", the longest first.
  std::vector<std::string> Parts(const model::Selection& selection = {.from_ns = 0, .to_ns = 1000}) {
    const auto found = ReadLaunchThreadsWhileIdle(*store_, selection);
    EXPECT_TRUE(found.has_value()) << found.error().message;
    EXPECT_TRUE(found->has_value());
    std::vector<std::string> parts;
    for (const model::LaunchThreadPart& part : **found)
      parts.push_back(fmt::format("{}/{} {}", part.range, part.call, part.time_ns));
    return parts;
  }
};

TEST_F(LaunchThreads, AGapIsDividedAmongTheInnermostRangesAndCalls) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 200, 300)});
  Add(model::kApiCalls, {Call(2, 1, 180, 190), Call(3, 1, 105, 110, "cudaStreamSynchronize"),
                         Call(4, 9, 100, 200, "elsewhere")});
  Add(model::kRanges, {Range(1, 50, 195, "ProfilerStep#12"), Range(1, 120, 170, "aten::to"),
                       Range(1, 130, 140, "aten::copy_"), Range(9, 0, 300, "another thread")});
  EXPECT_THAT(Parts(), ElementsAre("aten::to/ 40", "ProfilerStep/ 30", "ProfilerStep/cudaLaunchKernel 10",
                                   "aten::copy_/ 10", "/ 5", "ProfilerStep/cudaStreamSynchronize 5"));
}

TEST_F(LaunchThreads, TheThreadThatLaunchesTheNextWorkCounts) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 110, 120), Kernel(3, 150, 160)});
  Add(model::kApiCalls, {Call(2, 1, 100, 105), Call(3, 2, 125, 150)});
  Add(model::kRanges, {Range(1, 100, 150, "forward"), Range(2, 100, 150, "backward")});
  EXPECT_THAT(Parts(), ElementsAre("backward/cudaLaunchKernel 25", "backward/ 5", "forward/ 5",
                                   "forward/cudaLaunchKernel 5"));
}

// While another device or stream works, too: each device has its own gaps.
TEST_F(LaunchThreads, OverlappingWorkOfADeviceLeavesNoGap) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 10, 20), Kernel(3, 90, 110),
                        Kernel(4, 0, 300, kSecondLaunchGpu), Kernel(5, 120, 130)});
  Add(model::kApiCalls, {Call(2, 1, 5, 6), Call(3, 1, 80, 81), Call(5, 1, 112, 118)});
  EXPECT_THAT(Parts(), ElementsAre("/cudaLaunchKernel 6", "/ 4"));
  EXPECT_THAT(Parts({.from_ns = 0, .to_ns = 1000, .device = kSecondLaunchGpu}), IsEmpty());
}

TEST_F(LaunchThreads, OnlyTheSelectedTimeIsDivided) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 200, 300), Kernel(3, 400, 500)});
  Add(model::kApiCalls, {Call(2, 1, 0, 200, "first"), Call(3, 1, 300, 400, "second")});
  EXPECT_THAT(Parts({.from_ns = 250, .to_ns = 600}), ElementsAre("/second 100"));
}

TEST_F(LaunchThreads, NumbersOfOtherNamesStay) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 200, 300)});
  Add(model::kApiCalls, {Call(2, 1, 199, 200)});
  Add(model::kRanges, {Range(1, 100, 150, "layer2"), Range(1, 150, 199, "#7"),
                       Range(1, 0, 300, "crosses", "nvtx_start_end")});
  EXPECT_THAT(Parts(), ElementsAre("layer2/ 50", "#7/ 49", "/cudaLaunchKernel 1"));
}

TEST_F(LaunchThreads, MoreWorkThanCanBeReadIsNotRead) {
  const model::KernelPack pack{.process = kLauncher,
                               .device = kLaunchGpu,
                               .session = 1,
                               .start_ns = 0,
                               .end_ns = 100,
                               .count = std::numeric_limits<int64_t>::max(),
                               .offsets_ns = {1},
                               .durations_ns = {1},
                               .correlations = {1},
                               .graph_nodes = {}};
  Add(model::kKernelPacks, {pack, pack});
  const auto found = ReadLaunchThreadsWhileIdle(*store_, {.from_ns = 0, .to_ns = 1000});
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_FALSE(found->has_value());
}

// Between sampled calls there may have been others.
TEST_F(LaunchThreads, NothingIsKnownIfCallsWereSampled) {
  Add(model::kKernels, {Kernel(1, 0, 100), Kernel(2, 200, 300)});
  model::ApiCall sampled = Call(2, 1, 150, 160);
  sampled.probability = 0.5;
  Add(model::kApiCalls, {sampled});
  EXPECT_THAT(Parts(), IsEmpty());
}

}  // namespace
}  // namespace gpusonde::store
