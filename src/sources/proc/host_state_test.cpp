// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/host_state.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"

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
  EXPECT_TRUE(CpuCgroups(INT32_MAX).empty());
  EXPECT_EQ(ReadThrottledNs({}), std::nullopt);
  const std::vector<CgroupFolder> removed = {{.path = "/nonexistent/", .v1 = true}};
  EXPECT_EQ(ReadThrottledNs(removed), std::nullopt);
  EXPECT_EQ(ReadCpuQuota(removed), std::nullopt);
}

TEST(HostState, ReadsTheFilesOfThisProcessIfThereAreAny) {
  const std::vector<CgroupFolder> cgroups = CpuCgroups(::getpid());
  for (const CgroupFolder& each : cgroups) EXPECT_EQ(::access((each.path + "cpu.stat").c_str(), R_OK), 0);
}

TEST(HostState, ACpuQuotaIsItsShareOfThePeriod) {
  EXPECT_EQ(ParseCpuQuota("50000 100000\n"), 0.5);
  EXPECT_EQ(ParseCpuQuota("400000\n 100000\n"), 4.0);
  EXPECT_EQ(ParseCpuQuota("max 100000\n"), std::nullopt);
  EXPECT_EQ(ParseCpuQuota("-1\n 100000\n"), std::nullopt);
  for (const char* nonsense :
       {"", " ", "5", "5 ", "5 0", "5 -1", "0 100000", "99999999999999999999 1", "17592186044415 1000"})
    EXPECT_EQ(ParseCpuQuota(nonsense), std::nullopt) << nonsense;
}

TEST(HostState, TheLowestQuotaOfACgroupAndItsAncestorsCounts) {
  const TempFolder root;
  const auto group = [&](const char* name, bool v1, const std::map<std::string, std::string>& files) {
    const std::filesystem::path folder = std::filesystem::path(root.path()) / name;
    std::filesystem::create_directories(folder);
    for (const auto& [file, text] : files) std::ofstream(folder / file) << text;
    return CgroupFolder{.path = folder.string() + "/", .v1 = v1};
  };
  const CgroupFolder pod = group("pod", false, {{"cpu.max", "250000 100000\n"}});
  const CgroupFolder container = group("pod/container", false, {{"cpu.max", "max 100000\n"}});
  const CgroupFolder old =
      group("old", true, {{"cpu.cfs_quota_us", "5000\n"}, {"cpu.cfs_period_us", "20000\n"}});
  EXPECT_EQ(ReadCpuQuota(std::vector{container}), std::nullopt);
  EXPECT_EQ(ReadCpuQuota(std::vector{container, pod}), 2.5);
  EXPECT_EQ(ReadCpuQuota(std::vector{old}), 0.25);
}

}  // namespace
}  // namespace gpusonde::proc
