// SPDX-License-Identifier: Apache-2.0
#include "analyze/detail/waves.h"

#include <gtest/gtest.h>

#include <vector>

namespace gpusonde::analyze {
namespace {

importers::TracedDevice A100() {
  importers::TracedDevice device;
  device.sm_count = 108;
  device.multiprocessor = {.threads = 2'048, .blocks = 0, .registers = 65'536, .shared_bytes = 167'936};
  device.multiprocessor.SetCapability(8, 0);
  return device;
}

// The occupancies that PyTorch's profiler gives for these launches on an A100 are 75, 100 and 6 % of 2,048
// threads.
TEST(Waves, BlocksAtATimeAreBoundByThreadsRegistersOrSharedMemory) {
  EXPECT_EQ(ConcurrentBlocks({512, 512, 40, 400}, A100()), 3 * 108) << "registers";
  EXPECT_EQ(ConcurrentBlocks({512, 256, 32, 0}, A100()), 8 * 108) << "threads";
  EXPECT_EQ(ConcurrentBlocks({512, 32, 16, 0}, A100()), 32 * 108) << "blocks";
  EXPECT_EQ(ConcurrentBlocks({512, 128, 90, 100'000}, A100()), 108) << "shared memory";
  EXPECT_EQ(ConcurrentBlocks({512, 1'024, 128, 0}, A100()), std::nullopt) << "that doesn't fit";
  EXPECT_EQ(ConcurrentBlocks({512, 512, 0, 0}, A100()), std::nullopt) << "without registers";
  EXPECT_EQ(ConcurrentBlocks({512, 512, 40, 0}, importers::TracedDevice()), std::nullopt);
}

importers::GpuEvent Event(uint32_t name, int64_t duration_ns, int32_t device = 0) {
  return {.start_ns = 0, .end_ns = duration_ns, .device = device, .name = name};
}

importers::GpuDetail Grid(int64_t blocks) {
  return {.grid_and_block = {blocks, 1, 1, 256, 1, 1}, .registers = 32, .static_shared_bytes = 0};
}

TEST(Waves, OnlyTheEmptyPartOfALastWaveIsLost) {
  NameTable names;
  WaveTable table;
  table.Add(Event(names.Add("one and a half"), 1'000), Grid(864 + 432));
  table.Add(Event(names.Add("two"), 1'000), Grid(864 + 864));
  table.Add(Event(names.Add("a part of one"), 1'000), Grid(10));
  table.Add(Event(names.Add("unknown"), 50), {});
  const auto ranks = table.Finish(std::vector{A100()}, names);
  ASSERT_EQ(ranks.size(), 1u);
  EXPECT_EQ(ranks[0].lost_ns, 250);
  EXPECT_EQ(ranks[0].known_ns, 3'000);
  EXPECT_EQ(ranks[0].unknown_ns, 50);
  ASSERT_EQ(ranks[0].kernels.size(), 1u);
  EXPECT_EQ(ranks[0].kernels[0].name, "one and a half");
}

TEST(Waves, HostileGridsAreUnknown) {
  NameTable names;
  WaveTable table;
  importers::GpuDetail detail = Grid(int64_t{1} << 62);
  table.Add(Event(names.Add("k"), 10), detail);
  detail.grid_and_block = {int64_t{1} << 31, int64_t{1} << 31, int64_t{1} << 31, 1, 1, 1};
  table.Add(Event(0, 10), detail);
  for (int64_t i = 0; i < static_cast<int64_t>(WaveTable::kMaxShapes) + 10; ++i)
    table.Add(Event(0, 1), Grid(i + 1));
  const auto ranks = table.Finish(std::vector{A100()}, names);
  EXPECT_EQ(ranks[0].known_ns + ranks[0].unknown_ns, 20 + 100'010);
  EXPECT_GE(ranks[0].unknown_ns, 20 + 10);
}

}  // namespace
}  // namespace gpusonde::analyze
