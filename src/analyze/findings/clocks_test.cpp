// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kClockMs = 1'000'000;

// A rank with 20 steps of 10 ms on its device, of which the tenth took 20 ms, and samples of its clock each
// ms.
struct Clocked {
  NameTable names;
  std::map<uint32_t, std::vector<ValueCount>> fine;
  std::vector<JobRank> ranks{1};

  Clocked() {
    RankResult& result = ranks[0].result;
    int64_t at_ns = 5'000 * kClockMs;
    result.extent.Cover(at_ns, at_ns + 210 * kClockMs);
    for (int step = 0; step < 20; ++step) {
      const int64_t step_ns = (step == 10 ? 20 : 10) * kClockMs;
      result.steps.steps.push_back(
          {.start_ns = at_ns, .step_ns = step_ns, .gpu_begin_ns = at_ns, .gpu_ns = step_ns});
      at_ns += step_ns;
    }
  }
  // Clocks of 1,000 MHz within a range of ms since the first event, else of 2,000.
  std::vector<ClockLine> Compare(int64_t from_ms, int64_t to_ms, uint32_t reasons = 0) {
    ranks[0].clock.clear();
    for (int64_t ms = -50; ms < 300; ++ms) {
      const bool low = ms >= from_ms && ms < to_ms;
      ranks[0].clock.push_back(
          {.time_ns = (5'000 + ms) * kClockMs, .mhz = low ? 1'000 : 2'000, .reasons = low ? reasons : 0});
    }
    const Job job{
        .names = names, .kernels = {}, .libraries = {}, .fine = fine, .ranks = ranks, .metrics = {}};
    return CompareClocks(job, windows);
  }
  std::vector<WindowLine> windows;
};

TEST(CompareClocks, ALowClockInASlowStepIsToldFromOneInOthers) {
  Clocked made;
  const std::vector<ClockLine> lines = made.Compare(95, 115, 4);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].samples, 210);
  EXPECT_EQ(lines[0].usual_mhz, 2'000);
  EXPECT_EQ(lines[0].lowest_mhz, 1'000);
  EXPECT_EQ(lines[0].slow_ns, 20 * kClockMs);
  EXPECT_EQ(lines[0].slow_low_ns, 15 * kClockMs);
  EXPECT_EQ(lines[0].other_low_ns, 5 * kClockMs);
  EXPECT_EQ(lines[0].lost_ns, 7'500'000);
  EXPECT_EQ(lines[0].throttle_reasons, 4u);
  ASSERT_EQ(lines[0].longest.size(), 1u);
  EXPECT_EQ(lines[0].longest[0].begin_ns, 100 * kClockMs);
  EXPECT_EQ(lines[0].longest[0].end_ns, 115 * kClockMs);
}

TEST(CompareClocks, UnusualWindowsAreSlowTimeToo) {
  Clocked made;
  made.windows.push_back({.rank = 0, .begin_ns = 40 * kClockMs, .end_ns = 50 * kClockMs});
  const std::vector<ClockLine> lines = made.Compare(45, 60);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].slow_ns, 30 * kClockMs);
  EXPECT_EQ(lines[0].slow_low_ns, 5 * kClockMs);
  EXPECT_EQ(lines[0].other_low_ns, 10 * kClockMs);
}

TEST(CompareClocks, TheClockOfAnIdleDeviceIsNotLow) {
  Clocked made;
  EXPECT_EQ(made.Compare(100, 120, 1)[0].slow_low_ns, 0);
}

TEST(CompareClocks, AClockThatIsAlwaysTheSameIsUsual) {
  Clocked made;
  const std::vector<ClockLine> lines = made.Compare(-50, 300);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].usual_mhz, 1'000);
  EXPECT_EQ(lines[0].slow_low_ns, 0);
}

TEST(CompareClocks, ASampleDoesNotHoldForLong) {
  Clocked made;
  made.Compare(0, 0);
  std::erase_if(made.ranks[0].clock, [](const importers::ClockSample& sample) {
    return sample.time_ns > 5'100 * kClockMs && sample.time_ns < 5'120 * kClockMs;
  });
  for (importers::ClockSample& sample : made.ranks[0].clock)
    if (sample.time_ns == 5'100 * kClockMs) sample.mhz = 1'000;
  const Job job{.names = made.names,
                .kernels = {},
                .libraries = {},
                .fine = made.fine,
                .ranks = made.ranks,
                .metrics = {}};
  EXPECT_EQ(CompareClocks(job, {})[0].slow_low_ns, 4 * kClockMs);
}

TEST(CompareClocks, ATraceWithoutSamplesHasNone) {
  Clocked made;
  made.Compare(0, 0);
  made.ranks[0].clock.resize(9);
  const Job job{.names = made.names,
                .kernels = {},
                .libraries = {},
                .fine = made.fine,
                .ranks = made.ranks,
                .metrics = {}};
  EXPECT_TRUE(CompareClocks(job, {}).empty());
}

}  // namespace
}  // namespace gpusonde::analyze
