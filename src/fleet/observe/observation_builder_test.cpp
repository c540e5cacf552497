// SPDX-License-Identifier: Apache-2.0
#include "fleet/observe/observation_builder.h"

#include <gtest/gtest.h>

#include <limits>

namespace gpusonde::fleet {
namespace {

constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr int64_t kSmallest = std::numeric_limits<int64_t>::min();

using Kernel = ObservationBuilder::Kernel;

size_t GroupOf(std::string_view name) {
  for (size_t i = 0; i < Characteristics().size(); ++i)
    if (Characteristics()[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

TEST(ObservationBuilder, AnIdleGpuHasRowsOfNothing) {
  const Observation idle = ObservationBuilder().Build("GPU-1", "NVIDIA X");
  EXPECT_EQ(idle.gpu_uuid, "GPU-1");
  EXPECT_EQ(idle.gpu_name, "NVIDIA X");
  EXPECT_FALSE(idle.is_busy);
  EXPECT_EQ(idle.fingerprint, Fingerprint{});
  ASSERT_EQ(idle.rows.size(), OpenCharacteristics());
  for (const Row& row : idle.rows) EXPECT_EQ(row[0], 255u);
}

TEST(ObservationBuilder, MeasuresWhatItIsGiven) {
  ObservationBuilder builder;
  GpuWork work;
  FingerprintBuilder fingerprint;
  for (const int64_t stream : {7, 8, 7, 8, 8}) {
    const std::string name = stream == 7 ? "ampere_sgemm_128x32_nn" : "softmax_kernel";
    builder.AddKernel({.stream = stream,
                       .name = name,
                       .grid = {4, 5, 6},
                       .block = {32, 2, 1},
                       .registers = 40,
                       .static_shared_bytes = 1000,
                       .dynamic_shared_bytes = 24,
                       .duration_ns = 1000 * stream});
    fingerprint.Add(stream, name, 1000 * stream);
    work.kernels.push_back(
        {stream == 7 ? "ampere_sgemm_128x32_nn" : "softmax_kernel", 120, 64, 40, 1024, 1000 * stream});
  }
  builder.AddCopy("htod", 4096, 900);
  builder.AddCopy("dtoh", 1 << 20, 90'000);
  builder.AddCopy("dtod", 1 << 22, 9'000);
  builder.AddActivity({.sm = 0.5, .tensor = 0.25, .dram = 1});
  using Direction = GpuWork::Direction;
  work.copies = {{Direction::kToDevice, 4096, 900},
                 {Direction::kFromDevice, 1 << 20, 90'000},
                 {Direction::kWithinDevice, 1 << 22, 9'000}};
  work.activity = {{.sm = 0.5, .tensor = 0.25, .dram = 1}};
  const Observation observed = builder.Build("", "");
  EXPECT_TRUE(observed.is_busy);
  EXPECT_EQ(observed.kernels, 5u);
  EXPECT_EQ(observed.fingerprint, fingerprint.Build());
  for (uint32_t group = 0; group < OpenCharacteristics(); ++group)
    EXPECT_EQ(observed.rows[group], Measure(group, work)) << Characteristics()[group].name;
}

TEST(ObservationBuilder, StreamsOfOtherProcessesAndWindowsAreOthers) {
  const auto observe = [](Id128 second_process, int64_t second_context, bool new_window) {
    ObservationBuilder builder;
    builder.AddKernel({.process = {1, 1}, .context = 1, .stream = 7, .name = "first", .duration_ns = 10});
    if (new_window) builder.BeginWindow();
    builder.AddKernel({.process = second_process,
                       .context = second_context,
                       .stream = 7,
                       .name = "second",
                       .duration_ns = 10});
    return builder.Build("", "").fingerprint;
  };
  FingerprintBuilder apart;
  apart.Add(1, "first", 10);
  apart.Add(2, "second", 10);
  FingerprintBuilder in_a_row;
  in_a_row.Add(1, "first", 10);
  in_a_row.Add(1, "second", 10);
  ASSERT_NE(apart.Build(), in_a_row.Build());
  EXPECT_EQ(observe({1, 1}, 1, false), in_a_row.Build());
  EXPECT_EQ(observe({1, 2}, 1, false), apart.Build());
  EXPECT_EQ(observe({1, 1}, 2, false), apart.Build());
  EXPECT_EQ(observe({1, 1}, 1, true), apart.Build());
}

TEST(ObservationBuilder, CopiesThatTouchNoSuchMemoryOnlyMakeItBusy) {
  ObservationBuilder builder;
  for (const char* const kind : {"ptop", "htoh", "unknown", ""}) builder.AddCopy(kind, 4096, 100);
  const Observation observed = builder.Build("", "");
  EXPECT_TRUE(observed.is_busy);
  EXPECT_EQ(observed.rows[GroupOf("copy_sizes")][0], 255u);
  ObservationBuilder sets;
  sets.AddSet();
  EXPECT_TRUE(sets.Build("", "").is_busy);
}

TEST(ObservationBuilder, NumbersThatAFileMadeUpAreBounded) {
  ObservationBuilder builder;
  for (const int64_t size : {kLargest, kSmallest, int64_t{-1}, int64_t{1} << 31})
    builder.AddKernel({.stream = size,
                       .name = "made_up",
                       .grid = {size, size, size},
                       .block = {size, size, size},
                       .registers = size,
                       .static_shared_bytes = size,
                       .dynamic_shared_bytes = size,
                       .duration_ns = 5});
  builder.AddCopy("htod", kSmallest, kLargest);
  builder.AddCopy("htod", kLargest, 1);
  const Observation observed = builder.Build("", "");
  for (const Row& row : observed.rows) EXPECT_EQ(row.back(), 255u);
  const Row& shapes = observed.rows[GroupOf("launch_shapes")];
  EXPECT_GT(shapes[1], 0u) << "no blocks count as one";
  EXPECT_GT(shapes[31], 0u) << "2^63 blocks and more are in the last bin";
}

}  // namespace
}  // namespace gpusonde::fleet
