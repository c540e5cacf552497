// SPDX-License-Identifier: Apache-2.0
#include "agent/kernel_packer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "agent/rows_testing.h"
#include "base/testing/units.h"
#include "base/time.h"

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

cupti::Kernel Kernel(std::string_view name, uint32_t correlation, uint64_t graph_node = 0) {
  cupti::Kernel kernel;
  kernel.name = name;
  kernel.correlation = correlation;
  kernel.stream = 7;
  kernel.grid_x = 128;
  kernel.graph_node = graph_node;
  return kernel;
}

class KernelPackerTest : public testing::Test {
 protected:
  void Add(const cupti::Kernel& kernel, int64_t start_ns, int64_t end_ns) {
    packer_.Add({1, 1}, {2, 2}, 3, kernel, start_ns, end_ns);
  }
  std::vector<model::Batch> Write() {
    packer_.Write(rows_);
    return rows_.Take();
  }

  KernelPacker packer_;
  Rows rows_;
};

TEST_F(KernelPackerTest, KernelsOfALaunchAndSecondAreOneRow) {
  Add(Kernel("gemm", 10), 5 * kSecond + 100, 5 * kSecond + 300);
  Add(Kernel("gemm", 11), 5 * kSecond + 400, 6 * kSecond + 50);
  const std::vector<model::Batch> batches = Write();
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "start_ns"), ElementsAre(5 * kSecond));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "end_ns"), ElementsAre(6 * kSecond + 50));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "count"), ElementsAre(2));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "duration_ns"), ElementsAre(200 + kSecond - 350));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "offsets_ns"), ElementsAre(100, 400));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "durations_ns"), ElementsAre(200, kSecond - 350));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "correlations"), ElementsAre(10, 11));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "graph_nodes"), ElementsAre());
  EXPECT_TRUE(Write().empty()) << "once";
}

TEST_F(KernelPackerTest, KernelsOfARowAreInTheOrderOfTheirStarts) {
  Add(Kernel("gemm", 12, 3), kSecond + 900, kSecond + 950);
  Add(Kernel("gemm", 10, 1), kSecond + 100, kSecond + 300);
  Add(Kernel("gemm", 11, 2), kSecond + 400, kSecond + 500);
  const std::vector<model::Batch> batches = Write();
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "offsets_ns"), ElementsAre(100, 400, 900));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "durations_ns"), ElementsAre(200, 100, 50));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "correlations"), ElementsAre(10, 11, 12));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "graph_nodes"), ElementsAre(1, 2, 3));
}

TEST_F(KernelPackerTest, KernelsThatDifferInAnyFieldHaveARowEach) {
  const cupti::Kernel gemm = Kernel("gemm", 1);
  Add(gemm, kSecond, kSecond + 1);
  Add(gemm, 2 * kSecond, 2 * kSecond + 1);
  Add(Kernel("relu", 1), kSecond, kSecond + 1);
  Add(Kernel("gemm", 1, 9), kSecond, kSecond + 1);
  for (const auto& change : std::initializer_list<void (*)(cupti::Kernel&)>{
           [](cupti::Kernel& kernel) { kernel.stream = cupti::kNoStream; },
           [](cupti::Kernel& kernel) { kernel.context = 1; },
           [](cupti::Kernel& kernel) { kernel.grid_z = 1; },
           [](cupti::Kernel& kernel) { kernel.block_y = 1; },
           [](cupti::Kernel& kernel) { kernel.registers = 1; },
           [](cupti::Kernel& kernel) { kernel.static_shared_bytes = 1; },
           [](cupti::Kernel& kernel) { kernel.dynamic_shared_bytes = 1; }}) {
    cupti::Kernel other = gemm;
    change(other);
    Add(other, kSecond, kSecond + 1);
  }
  packer_.Add({1, 9}, {2, 2}, 3, gemm, kSecond, kSecond + 1);
  packer_.Add({1, 1}, {2, 9}, 3, gemm, kSecond, kSecond + 1);
  packer_.Add({1, 1}, {2, 2}, 4, gemm, kSecond, kSecond + 1);
  const std::vector<model::Batch> batches = Write();
  EXPECT_EQ(FixedColumn<int64_t>(batches, "kernel_packs", "count"), std::vector<int64_t>(14, 1));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "graph_nodes"), ElementsAre(9));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "stream"), testing::Contains(-1).Times(1));
}

TEST_F(KernelPackerTest, RowsHaveABoundedNumberOfKernels) {
  constexpr auto kMost = static_cast<int64_t>(KernelPacker::kMaxKernels);
  for (int64_t i = 2 * kMost; i >= 0; --i)
    Add(Kernel("gemm", static_cast<uint32_t>(i)), kSecond + 10 * i, kSecond + 10 * i + 3);
  const std::vector<model::Batch> batches = Write();
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "count"), ElementsAre(kMost, kMost, 1));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "duration_ns"),
              ElementsAre(3 * kMost, 3 * kMost, 3));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "start_ns"),
              ElementsAre(kSecond, kSecond, kSecond));
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "end_ns"),
              ElementsAre(kSecond + 10 * kMost - 7, kSecond + 20 * kMost - 7, kSecond + 20 * kMost + 3));
  std::vector<int64_t> all(static_cast<size_t>(2 * kMost + 1));
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(FixedColumn<int64_t>(batches, "kernel_packs", "correlations"), all);
}

TEST_F(KernelPackerTest, TimesOfUntrustedProcessesAreSaturated) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();
  Add(Kernel("gemm", 1), 0, kLatest);
  Add(Kernel("gemm", 2), 1, kLatest);
  Add(Kernel("gemm", 3), kLatest, kLatest);
  const std::vector<model::Batch> batches = Write();
  EXPECT_THAT(FixedColumn<int64_t>(batches, "kernel_packs", "duration_ns"), UnorderedElementsAre(kLatest, 0));
}

}  // namespace
}  // namespace gpusonde::agent
