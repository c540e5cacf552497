// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "model/tables/api_calls.h"
#include "model/tables/kernels.h"
#include "store/recordings/testing/memory_store.h"
#include "store/rollups/work_sums.h"

namespace gpusonde::store {
namespace {

constexpr Id128 kRank0{5, 1}, kRank1{5, 2};
constexpr Id128 kDevice{6, 0};
constexpr Id128 kStack{4, 1};

class WorkParts : public MemoryStoreTest {
 protected:
  static model::Kernel Kernel(Id128 process, int64_t correlation, int64_t start_ns) {
    return {.process = process,
            .device = kDevice,
            .session = 1,
            .correlation = correlation,
            .stream = 7,
            .start_ns = start_ns,
            .end_ns = start_ns + 10,
            .name = "gemm"};
  }
  static model::ApiCall Call(Id128 process, int64_t correlation, int64_t start_ns) {
    return {.process = process,
            .tid = 100,
            .session = 1,
            .correlation = correlation,
            .start_ns = start_ns,
            .end_ns = start_ns + 1,
            .domain = "cuda_runtime",
            .name = "cudaLaunchKernel",
            .stack = kStack,
            .probability = 0.5};
  }
  std::vector<model::KernelWindow> Sums() {
    auto sums = SumWork(Asking(*store_), {}, {0, std::numeric_limits<int64_t>::max()});
    EXPECT_TRUE(sums.has_value()) << sums.error().message;
    return sums.value_or(std::vector<model::KernelWindow>());
  }
};

// More rows than are read at once. The second kernel of a launch starts when all first ones have, and both
// processes use the same correlation ids.
TEST_F(WorkParts, OfALaunchAreSummedTogetherHoweverManyRowsThereAre) {
  constexpr int64_t kLaunches = 170'000;
  std::vector<model::Kernel> kernels;
  std::vector<model::ApiCall> calls;
  for (const int64_t second_kernel : {0, 1})
    for (int64_t i = 0; i < kLaunches; ++i) {
      kernels.push_back(Kernel(kRank0, i, i + second_kernel * kLaunches));
      if (second_kernel == 1) continue;
      kernels.push_back(Kernel(kRank1, i, i));
      calls.push_back(Call(kRank0, i, i));
    }
  Add(model::kKernels, kernels);
  Add(model::kApiCalls, calls);
  const std::vector<model::KernelWindow> sums = Sums();
  ASSERT_THAT(sums, testing::SizeIs(3));
  EXPECT_EQ(sums[0].process, kRank0);
  EXPECT_EQ(sums[0].count, 2 * kLaunches);
  EXPECT_EQ(sums[0].duration_ns, 20 * kLaunches);
  EXPECT_EQ(sums[1].process, kRank1);
  EXPECT_EQ(sums[1].count, kLaunches);
  EXPECT_EQ(sums[2].part, model::WorkPart::kSampled);
  EXPECT_EQ(sums[2].process, kRank0);
  EXPECT_DOUBLE_EQ(sums[2].weight, 2 * kLaunches);
  EXPECT_DOUBLE_EQ(sums[2].time_ns, 40 * kLaunches);
  EXPECT_DOUBLE_EQ(sums[2].variance_ns2, 2.0 * 20 * 20 * kLaunches);
}

TEST_F(WorkParts, HoldWorkWithAnyCorrelationId) {
  constexpr int64_t kLast = std::numeric_limits<int64_t>::max();
  std::vector<model::Kernel> kernels;
  std::vector<model::ApiCall> calls;
  for (const int64_t correlation : {-kLast - 1, int64_t{-7}, int64_t{0}, int64_t{1} << 62, kLast}) {
    kernels.push_back(Kernel(kRank0, correlation, 100));
    calls.push_back(Call(kRank0, correlation, 50));
  }
  // More than are read at once, of ids close to each other.
  for (int64_t i = 0; i < 510'000; ++i) kernels.push_back(Kernel(kRank1, (int64_t{1} << 33) + i % 100, 100));
  Add(model::kKernels, kernels);
  Add(model::kApiCalls, calls);
  const std::vector<model::KernelWindow> sums = Sums();
  ASSERT_THAT(sums, testing::SizeIs(3));
  EXPECT_EQ(sums[0].count, 5);
  EXPECT_EQ(sums[1].count, 510'000);
  EXPECT_DOUBLE_EQ(sums[2].weight, 2 * 5);
}

// As in a trace of both the runtime's and the driver's calls.
TEST_F(WorkParts, OfTwoNestedLaunchesWithOneIdAreTheInnerOnes) {
  constexpr Id128 kInnerStack{4, 2};
  std::vector<model::ApiCall> calls;
  for (const int64_t start_ns : {1'000, 2'000'000'000}) {
    model::ApiCall inner = Call(kRank0, 5, start_ns + 10);
    inner.stack = kInnerStack;
    calls.insert(calls.end(), {Call(kRank0, 5, start_ns), inner});
  }
  Add(model::kApiCalls, calls);
  // The last one starts before its launch: the clocks differ.
  Add(model::kKernels, {Kernel(kRank0, 5, 2'000), Kernel(kRank0, 5, 2'100), Kernel(kRank0, 5, 999)});
  const std::vector<model::KernelWindow> sums = Sums();
  ASSERT_THAT(sums, testing::SizeIs(3));
  EXPECT_EQ(sums[0].count, 3);
  EXPECT_EQ(sums[1].stack, kStack);
  EXPECT_DOUBLE_EQ(sums[1].time_ns, 2 * 10);
  EXPECT_EQ(sums[2].stack, kInnerStack);
  EXPECT_DOUBLE_EQ(sums[2].time_ns, 2 * 20);
  EXPECT_DOUBLE_EQ(sums[2].weight, 2);
}

// A hostile trace: compared one by one, the launches of each kernel would take minutes.
TEST_F(WorkParts, OfEqualAndOfAlikeCorrelationIdsAreSummedAsQuickly) {
  constexpr int64_t kLaunches = 250'000;
  for (const int64_t factor : {int64_t{0}, int64_t{1} << 20}) {
    SCOPED_TRACE(factor);
    SetUp();  // an empty store
    std::vector<model::Kernel> kernels;
    std::vector<model::ApiCall> calls;
    for (int64_t i = 0; i < kLaunches; ++i) {
      kernels.push_back(Kernel(kRank0, i * factor, i));
      calls.push_back(Call(kRank0, i * factor, i));
    }
    Add(model::kKernels, kernels);
    Add(model::kApiCalls, calls);
    const std::vector<model::KernelWindow> sums = Sums();
    ASSERT_THAT(sums, testing::SizeIs(2));
    EXPECT_EQ(sums[0].count, kLaunches);
    EXPECT_DOUBLE_EQ(sums[1].weight, 2 * kLaunches) << "each started something";
  }
}

}  // namespace
}  // namespace gpusonde::store
