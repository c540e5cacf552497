// SPDX-License-Identifier: Apache-2.0
#include "fleet/characteristics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>

namespace gpusonde::fleet {
namespace {

uint32_t GroupOf(std::string_view name) {
  const auto groups = Characteristics();
  for (uint32_t i = 0; i < groups.size(); ++i)
    if (groups[i].name == name) return i;
  ADD_FAILURE() << name;
  return 0;
}

// The bins that hold something, and what.
std::map<size_t, uint32_t> Filled(std::string_view group, const GpuWork& work) {
  const Row row = Measure(GroupOf(group), work);
  std::map<size_t, uint32_t> filled;
  for (size_t bin = 0; bin < kBins; ++bin)
    if (row[bin] != 0) filled[bin] = row[bin];
  return filled;
}

using Bars = std::map<size_t, uint32_t>;

GpuWork Some() {
  GpuWork work;
  work.kernels = {{"ampere_sgemm_128x32_nn", 64, 256, 0, 0, 3000},
                  {"void at::native::vectorized_elementwise_kernel<4>(int)", 1, 1024, 64, 100'000, 1000}};
  work.copies = {{GpuWork::Direction::kToDevice, 1 << 20, 100'000},
                 {GpuWork::Direction::kWithinDevice, 1 << 30, 0}};
  return work;
}

TEST(Characteristics, EveryRowWeighsTheSame) {
  for (const GpuWork& work : {GpuWork(), Some()}) {
    for (uint32_t group = 0; group < Characteristics().size(); ++group) {
      const Row row = Measure(group, work);
      EXPECT_EQ(std::accumulate(row.begin(), row.begin() + kBins, 0u), privacy::kReportWeight);
      EXPECT_EQ(row[kBins], privacy::kReportWeight);
      if (work.kernels.empty()) {
        EXPECT_EQ(row[0], privacy::kReportWeight) << "nothing was measured";
      }
    }
  }
}

TEST(Characteristics, AreEightWithoutOptingIn) {
  EXPECT_EQ(OpenCharacteristics(), 8u);
  std::set<std::string_view> names;
  for (const Characteristic& group : Characteristics()) names.insert(group.name);
  EXPECT_EQ(names.size(), Characteristics().size());
  EXPECT_FALSE(Characteristics().front().opt_in);
  EXPECT_TRUE(Characteristics().back().opt_in);
}

TEST(Characteristics, FillTheirDeclaredBins) {
  EXPECT_EQ(Filled("kernel_types", Some()), (Bars{{4, 191}, {17, 64}})) << "GEMM 3/4, elementwise 1/4";
  // 1,000 ns: 3.9 half octaves above 256; 3,000 ns: 7.1.
  EXPECT_EQ(Filled("kernel_durations", Some()), (Bars{{4, 128}, {8, 127}}));
  EXPECT_EQ(Filled("launch_shapes", Some()), (Bars{{1, 32}, {7, 96}, {39, 95}, {62, 32}}));
  // 256 threads fill an SM; 1,024 with 100,000 bytes of shared memory: one block, one half.
  EXPECT_EQ(Filled("occupancy", Some()), (Bars{{62, 191}, {32, 64}}));
  // Registers: not known, and 64 of 256; shared memory: none, and 19.2 half octaves above 128.
  EXPECT_EQ(Filled("registers_and_shared", Some()), (Bars{{0, 96}, {8, 32}, {32, 95}, {51, 32}}));
  EXPECT_EQ(Filled("copy_sizes", Some()), (Bars{{10, 128}, {60, 127}}));
  EXPECT_EQ(Filled("copy_rates", Some()), (Bars{{12, 255}})) << "10.5 GB/s; the other has no duration";
  EXPECT_EQ(Filled("unit_activity", Some()), (Bars{{0, 255}})) << "no counters";
  GpuWork counted;
  counted.activity = {{.sm = 0.5, .tensor = 0, .dram = 1}};
  EXPECT_EQ(Filled("unit_activity", counted), (Bars{{11, 85}, {21, 85}, {60, 85}}));
}

TEST(Characteristics, PowersOfTwoBeginTheirBins) {
  for (size_t octave = 0; octave < 15; ++octave) {
    GpuWork work;
    work.kernels = {{.name = "k",
                     .blocks = uint64_t{1} << octave,
                     .threads_per_block = 32,
                     .shared_bytes_per_block = uint32_t{128} << octave,
                     .duration_ns = int64_t{256} << octave}};
    work.copies = {{GpuWork::Direction::kToDevice, int64_t{2048} << octave, 512'000}};
    EXPECT_EQ(Filled("kernel_durations", work), (Bars{{1 + 2 * octave, 255}})) << octave;
    EXPECT_EQ(Filled("launch_shapes", work).begin()->first, 1 + octave);
    EXPECT_TRUE(Filled("registers_and_shared", work).contains(32 + 2 * octave)) << octave;
    EXPECT_EQ(Filled("copy_sizes", work), (Bars{{1 + octave, 255}})) << octave;
    EXPECT_EQ(Filled("copy_rates", work), (Bars{{1 + octave, 255}})) << octave << ": 4 MB/s and its doubles";
  }
}

TEST(Characteristics, SurviveAbsurdNumbers) {
  GpuWork work;
  work.kernels = {
      {"", ~uint64_t{0}, ~uint32_t{0}, ~uint32_t{0}, ~uint32_t{0}, std::numeric_limits<int64_t>::max()},
      {"x", 0, 0, 0, 0, -5}};
  work.copies = {{GpuWork::Direction::kFromDevice, -1, -1},
                 {GpuWork::Direction::kFromDevice, std::numeric_limits<int64_t>::max(), 1}};
  work.activity = {{.sm = -1, .tensor = std::numeric_limits<double>::quiet_NaN(), .dram = 1e300}};
  for (uint32_t group = 0; group < Characteristics().size(); ++group) {
    const Row row = Measure(group, work);
    EXPECT_EQ(std::accumulate(row.begin(), row.begin() + kBins, 0u), privacy::kReportWeight)
        << Characteristics()[group].name;
  }
}

TEST(Characteristics, ProfileValuesOfACopy) {
  const std::vector<float> values = {0, 0, 1, 1, 1024, std::numeric_limits<float>::infinity(), 0, 0.5F};
  const GpuWork::Values profile = ProfileValues(values);
  EXPECT_DOUBLE_EQ(profile.zeros, 3.0 / 8);
  EXPECT_DOUBLE_EQ(profile.repeats, 2.0 / 8);
  EXPECT_DOUBLE_EQ(profile.exponent_range, 11);
  EXPECT_DOUBLE_EQ(ProfileValues({}).zeros, 0);
}

}  // namespace
}  // namespace gpusonde::fleet
