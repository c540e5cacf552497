// SPDX-License-Identifier: Apache-2.0
#include "agent/device_table.h"

#include <gtest/gtest.h>

namespace gpusonde::agent {
namespace {

using enum DeviceTable::Witness;

model::Device ByCuda() {
  return {.device = {1, 1}, .ordinal = 0, .uuid = "GPU-1", .name = "X", .sm_count = 132, .memory_bytes = 79};
}
model::Device ByNvml() {
  return {.device = {1, 1},
          .ordinal = 3,
          .uuid = "GPU-1",
          .name = "X",
          .memory_bytes = 80,
          .pci_bus = "0000:81:00.0"};
}

TEST(DeviceTable, NvmlWinsOverCudaInEitherOrder) {
  for (const bool cuda_first : {true, false}) {
    DeviceTable table;
    EXPECT_TRUE(cuda_first ? table.Add(ByCuda(), kCuda) : table.Add(ByNvml(), kNvml));
    const auto row = cuda_first ? table.Add(ByNvml(), kNvml) : table.Add(ByCuda(), kCuda);
    ASSERT_TRUE(row.has_value());
    EXPECT_EQ(row->ordinal, 3);
    EXPECT_EQ(row->memory_bytes, 80);
    EXPECT_EQ(row->sm_count, 132);
    EXPECT_EQ(row->pci_bus, "0000:81:00.0");
    EXPECT_FALSE(table.Add(ByCuda(), kCuda).has_value()) << "nothing new";
    EXPECT_FALSE(table.Add(ByNvml(), kNvml).has_value());
  }
}

TEST(DeviceTable, AllDevicesCanBeWrittenAgain) {
  DeviceTable table;
  table.Add(ByCuda(), kCuda);
  model::Device other = ByNvml();
  other.device = {2, 2};
  table.Add(other, kNvml);
  int devices = 0;
  table.ForEach([&](const model::Device&) { ++devices; });
  EXPECT_EQ(devices, 2);
}

TEST(DeviceTable, OnlyANameOfSimgpuIsSimulated) {
  EXPECT_TRUE(SaysSimulated("Simulated H100"));
  EXPECT_FALSE(SaysSimulated("NVIDIA H100"));
}

}  // namespace
}  // namespace gpusonde::agent
