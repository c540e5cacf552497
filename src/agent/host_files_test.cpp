// SPDX-License-Identifier: Apache-2.0
#include "agent/host_files.h"

#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/time.h"
#include "model/batch.h"
#include "model/batch_rows.h"
#include "sources/proc/allowed_cpus.h"

namespace gpusonde::agent {
namespace {

constexpr Id128 kFilesSource{1, 0};
constexpr Id128 kPolled{2, 0};
constexpr int64_t kFilesOffsetNs = 1'000 * kNanosPerSecond;

std::vector<model::Signal> Write(HostFiles& files, int64_t now_ns) {
  model::BatchBuilder<decltype(model::kSignals)> rows(model::kSignals);
  files.Write(
      kFilesSource, kFilesOffsetNs, now_ns,
      [](int32_t pid) { return pid == ::getpid() ? std::optional(kPolled) : std::nullopt; }, rows);
  return model::RowsOf(model::kSignals, rows.Take());
}

TEST(HostFilesTest, TheCpusOfAWorkloadAreItsAllowedCpusTimesTheTime) {
  HostFiles files;
  files.SetWorkloads({{kPolled, ::getpid()}});
  EXPECT_TRUE(Write(files, 5 * kNanosPerSecond).empty()) << "there is no time to speak of yet";
  std::optional<model::Signal> cpus;
  for (const model::Signal& row : Write(files, 7 * kNanosPerSecond))
    if (row.metric == "process.cpus") cpus = row;
  ASSERT_TRUE(cpus.has_value());
  EXPECT_EQ(cpus->process, kPolled);
  EXPECT_EQ(cpus->start_ns, kFilesOffsetNs + 5 * kNanosPerSecond);
  EXPECT_EQ(cpus->bucket_ns, 2 * kNanosPerSecond);
  ASSERT_EQ(cpus->values.size(), 1u);
  EXPECT_EQ(cpus->values[0], int64_t{*proc::CountAllowedCpus(::getpid())} * 2 * kNanosPerSecond);
}

// As `systemd-run --scope`, a batch scheduler or `cgclassify` move a program that runs.
TEST(HostFilesTest, AWorkloadThatIsMovedIsThrottledByItsNewCgroupAndHasItsQuota) {
  const auto group =
      std::filesystem::path("/sys/fs/cgroup/cpu") / ("gpusonde-test-" + std::to_string(::getpid()));
  std::error_code failed;
  if (!std::filesystem::create_directory(group, failed))
    GTEST_SKIP() << "no CPU controller of cgroup version 1 to use: " << failed.message();
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(group / file) << text; };
  write("cpu.cfs_quota_us", "5000");
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) static_cast<void>(MonotonicNow());
  }
  HostFiles files;
  files.SetWorkloads({{kPolled, child}});
  int64_t throttled_ns = 0;
  std::vector<int64_t> quotas;  // of a second each
  for (const int64_t second : {5, 6, 7}) {
    model::BatchBuilder<decltype(model::kSignals)> rows(model::kSignals);
    files.Write(
        kFilesSource, kFilesOffsetNs, second * kNanosPerSecond,
        [](int32_t) { return std::optional(kPolled); }, rows);
    for (const model::Signal& row : model::RowsOf(model::kSignals, rows.Take())) {
      if (row.metric == "cgroup.throttled") throttled_ns += row.values.at(0);
      if (row.metric == "cgroup.cpu_quota") quotas.push_back(row.values.at(0));
    }
    if (second == 5) {
      EXPECT_EQ(throttled_ns, 0);
      write("cgroup.procs", std::to_string(child));
    } else if (second == 6) {
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }
  EXPECT_GE(throttled_ns, 100 * kNanosPerMilli);
  EXPECT_EQ(quotas, std::vector<int64_t>(2, 50 * kNanosPerMilli)) << "5 ms in 100 ms";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::filesystem::remove(group, failed);
}

// The sum of a child's metric in [5 s, 7 s) of the clock that HostFiles is given.
int64_t SumNs(int32_t child, std::string_view metric) {
  HostFiles files;
  files.SetWorkloads({{kPolled, child}});
  int64_t sum_ns = -1;
  for (const int64_t now_ns : {5 * kNanosPerSecond, 7 * kNanosPerSecond}) {
    model::BatchBuilder<decltype(model::kSignals)> rows(model::kSignals);
    files.Write(kFilesSource, kFilesOffsetNs, now_ns, [](int32_t) { return std::optional(kPolled); }, rows);
    for (const model::Signal& row : model::RowsOf(model::kSignals, rows.Take()))
      if (row.metric == metric) sum_ns = row.values.at(0);
  }
  return sum_ns;
}

TEST(HostFilesTest, AStoppedWorkloadIsStoppedForTheTimeBetweenTwoReadings) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  EXPECT_EQ(SumNs(child, "process.stopped"), 0);
  ::kill(child, SIGSTOP);
  ASSERT_EQ(::waitpid(child, nullptr, WUNTRACED), child);
  EXPECT_EQ(SumNs(child, "process.stopped"), 2 * kNanosPerSecond);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(HostFilesTest, TheNiceValueOfAWorkloadCountsForTheTimeBetweenTwoReadings) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(child), 15), 0);
  EXPECT_EQ(SumNs(child, "process.nice"), 30 * kNanosPerSecond);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(HostFilesTest, NothingIsWrittenWithoutWorkloads) {
  HostFiles files;
  EXPECT_TRUE(Write(files, 5 * kNanosPerSecond).empty());
  EXPECT_TRUE(Write(files, 7 * kNanosPerSecond).empty());
}

}  // namespace
}  // namespace gpusonde::agent
