// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/host_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpusonde::proc {
namespace {

TEST(HostState, PressureIsTheTotalOfTheSomeLine) {
  EXPECT_EQ(ParsePressureNs("some avg10=0.02 avg60=0.02 avg300=0.02 total=143377097\n"
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=28041127\n"),
            143'377'097'000);
  EXPECT_EQ(ParsePressureNs("full avg10=0.00 total=5\n"), std::nullopt);
  EXPECT_EQ(ParsePressureNs("some avg10=0.00 total=\n"), std::nullopt);
}

TEST(HostState, StealIsTheEighthNumberOfTheFirstLine) {
  EXPECT_EQ(ParseStealNs("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 0 0 0 0 0 0 0 99\n"), 80'000'000);
  EXPECT_EQ(ParseStealNs("cpu  1 2 3\n"), std::nullopt);
  EXPECT_EQ(ParseStealNs("intr 1\n"), std::nullopt);
}

TEST(HostState, ThrottledTimeIsReadFromBothVersionsOfCgroups) {
  EXPECT_EQ(ParseThrottledNs("nr_periods 3\nnr_throttled 2\nthrottled_time 123456\n"), 123'456);
  EXPECT_EQ(ParseThrottledNs("usage_usec 7\nnr_throttled 2\nthrottled_usec 42\nburst_usec 0\n"), 42'000);
  EXPECT_EQ(ParseThrottledNs("usage_usec 7\n"), std::nullopt);
}

TEST(HostState, AProcessThatIsGoneHasNoCgroup) {
  EXPECT_TRUE(CpuStatFiles(INT32_MAX).empty());
  EXPECT_EQ(ReadThrottledNs({}), std::nullopt);
  EXPECT_EQ(ReadThrottledNs({"/nonexistent/cpu.stat"}), std::nullopt);
}

TEST(HostState, ReadsTheFilesOfThisProcessIfThereAreAny) {
  for (const std::string& file : CpuStatFiles(::getpid())) EXPECT_TRUE(file.ends_with("/cpu.stat")) << file;
}

}  // namespace
}  // namespace gpusonde::proc
