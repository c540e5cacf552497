// SPDX-License-Identifier: Apache-2.0
#include "sources/ebpf/host_signals.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "sources/ebpf/testing/host_signals_fixture.h"

namespace gpusonde::ebpf {
namespace {

constexpr int64_t kPatienceNs = 60 * kNanosPerSecond;

using HostSignalsTest = HostSignalsFixture;

void PinToCpu(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ASSERT_EQ(::sched_setaffinity(0, sizeof set, &set), 0);
}

// Holds under any load, and where a switch isn't seen: the states of a thread add up to its time.
TEST_F(HostSignalsTest, TheStatesOfAThreadSumUpToItsTime) {
  constexpr int64_t kAsleepNs = 750 * kNanosPerMilli;
  constexpr int64_t kBurntNs = 150 * kNanosPerMilli;
  // What came before the thread was last switched in is reported by the Drain that doesn't count.
  const int64_t begin_ns = MonotonicNow();
  std::this_thread::sleep_for(std::chrono::milliseconds(1));  // registers the thread
  Drain();
  by_signal_.clear();
  for (int i = 0; i < 10; ++i) {
    Burn(kBurntNs / 10);
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // longer than GPUSONDE_SIGNAL_SPREAD buckets
  std::this_thread::sleep_for(std::chrono::milliseconds(1));    // ends the interval before
  const int64_t length_ns = MonotonicNow() - begin_ns;
  Drain();
  int64_t sum_ns = 0;
  for (const auto signal : {GPUSONDE_SIGNAL_RUNNING, GPUSONDE_SIGNAL_RUN_QUEUE, GPUSONDE_SIGNAL_BLOCKED_IO,
                            GPUSONDE_SIGNAL_BLOCKED, GPUSONDE_SIGNAL_WAITING, GPUSONDE_SIGNAL_SLEEPING})
    sum_ns += by_signal_[signal];
  // The time since the thread was last switched in isn't reported yet, and may be long on a busy CPU.
  EXPECT_LE(sum_ns, length_ns + kNanosPerMilli);
  EXPECT_GE(sum_ns, kAsleepNs + kBurntNs);
  EXPECT_GT(by_signal_[GPUSONDE_SIGNAL_RUNNING], 0);
  EXPECT_GE(by_signal_[GPUSONDE_SIGNAL_SLEEPING], kAsleepNs);
}

// The BPF program keeps the sum of a thread's last bucket with the thread. As above, not each switch may be
// seen.
TEST_F(HostSignalsTest, ReportsTheLastBucketOfAThreadThatHasEnded) {
  constexpr auto kAsleep = std::chrono::milliseconds(3);
  const int64_t asleep_ns = std::chrono::nanoseconds(kAsleep).count();
  int64_t longest_ns = 0;
  for (int round = 0; round < 3 && longest_ns < 2 * asleep_ns; ++round) {
    int32_t ended = 0;
    std::thread([&] {
      ended = ::gettid();
      std::this_thread::sleep_for(kAsleep);
      Burn(asleep_ns);
    }).join();
    Drain();
    longest_ns = std::max(longest_ns, sums_[ended]);
  }
  EXPECT_GE(longest_ns, 2 * asleep_ns);
}

TEST_F(HostSignalsTest, ReportsTheLastBucketOfALivingThread) {
  constexpr auto kAsleep = std::chrono::milliseconds(3);
  const int64_t asleep_ns = std::chrono::nanoseconds(kAsleep).count();
  int64_t longest_ns = 0;
  for (int round = 0; round < 3 && longest_ns < asleep_ns; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // registers the thread
    Drain();
    sums_.clear();
    std::this_thread::sleep_for(kAsleep);
    Drain();
    longest_ns = std::max(longest_ns, sums_[::gettid()]);
  }
  EXPECT_GE(longest_ns, asleep_ns);
}

// One run of the BPF program finishes the sums of some of them. As above, not each switch may be seen.
TEST_F(HostSignalsTest, ReportsTheLastBucketsOfManyThreads) {
  constexpr size_t kThreads = 300;
  constexpr auto kAsleep = std::chrono::milliseconds(3);
  size_t most_told = 0;
  for (int round = 0; round < 3 && most_told < kThreads; ++round) {
    std::vector<int32_t> tids(kThreads);
    std::vector<std::thread> threads;
    std::latch awake(kThreads);
    std::atomic<bool> done = false;
    for (int32_t& tid : tids)
      threads.emplace_back([&] {
        tid = ::gettid();
        std::this_thread::sleep_for(kAsleep);
        awake.count_down();
        done.wait(false);
      });
    awake.wait();
    Drain();
    const auto told = std::ranges::count_if(
        tids, [&](int32_t tid) { return sums_[tid] >= std::chrono::nanoseconds(kAsleep).count(); });
    most_told = std::max(most_told, static_cast<size_t>(told));
    done = true;
    done.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(most_told, kThreads);
}

TEST_F(HostSignalsTest, ThreadsThatHaveEndedTakeNoRoom) {
  for (int i = 1; i <= 20'000; ++i) {  // more than there is room for at a time
    std::thread([] {}).join();
    if (i % 1'000 == 0) Drain();
  }
  EXPECT_EQ(signals_->DrainDrops().Of(model::DropReason::kSignalsLost), 0);
}

TEST_F(HostSignalsTest, NamesTheProcessThatTakesTheCpu) {
  const int cpu = ::sched_getcpu();
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t hog = ::fork();
  if (hog == 0) {
    ::prctl(PR_SET_NAME, "cpu-hog");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    PinToCpu(cpu);
    (void)!::write(ready[1], "1", 1);
    for (;;) Burn(kNanosPerSecond);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  PinToCpu(cpu);
  // Until it has waited a quarter of a second behind the other process with which it shares one CPU.
  const int64_t deadline_ns = MonotonicNow() + kPatienceNs;
  while (behind_[hog] < kNanosPerSecond / 4 && MonotonicNow() < deadline_ns) {
    Burn(50 * kNanosPerMilli);
    Drain();
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  const std::optional<HostSignals::Other> who = signals_->FindProcess(hog);
  ::kill(hog, SIGKILL);
  ::waitpid(hog, nullptr, 0);
  EXPECT_GE(behind_[hog], kNanosPerSecond / 4);
  EXPECT_GE(by_signal_[GPUSONDE_SIGNAL_RUN_QUEUE], behind_[hog]);
  ASSERT_TRUE(who.has_value());
  EXPECT_EQ(who->name, "cpu-hog");
}

// Two threads of this process share a CPU because another process keeps the other CPUs.
TEST_F(HostSignalsTest, NamesTheProcessThatTakesTheOtherCpus) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "needs two CPUs";
  const int here = ::sched_getcpu();
  int there = 0;
  while (there == here || !CPU_ISSET(there, &all)) ++there;
  cpu_set_t both;
  CPU_ZERO(&both);
  CPU_SET(here, &both);
  CPU_SET(there, &both);
  const pid_t hog = ::fork();
  if (hog == 0) {
    ::prctl(PR_SET_NAME, "cpu-hog");
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    PinToCpu(there);
    // Else the scheduler would divide the CPU between it and the threads below.
    const sched_param priority{.sched_priority = 1};
    ::sched_setscheduler(0, SCHED_FIFO, &priority);
    for (;;) Burn(kNanosPerSecond);
  }
  StartAgain();
  ASSERT_EQ(::sched_setaffinity(0, sizeof both, &both), 0);
  std::atomic<bool> done = false;
  std::thread rival([&done] {
    while (!done) Burn(50 * kNanosPerMilli);
  });
  int64_t displaced_ns = 0;
  const int64_t deadline_ns = MonotonicNow() + kPatienceNs;
  while (displaced_ns < kNanosPerSecond / 10 && MonotonicNow() < deadline_ns) {
    Burn(50 * kNanosPerMilli);
    ASSERT_TRUE(signals_
                    ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                      if (sum.signal == GPUSONDE_SIGNAL_DISPLACED && sum.other == hog)
                        displaced_ns += sum.amount;
                    }))
                    .has_value());
  }
  done = true;
  rival.join();
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  const std::optional<HostSignals::Other> who = signals_->FindProcess(hog);
  ::kill(hog, SIGKILL);
  ::waitpid(hog, nullptr, 0);
  EXPECT_GE(displaced_ns, kNanosPerSecond / 10);
  ASSERT_TRUE(who.has_value());
  EXPECT_EQ(who->name, "cpu-hog");
}

TEST_F(HostSignalsTest, AWaitForAnotherTargetNamesIt) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    Burn(200 * kNanosPerMilli);
    (void)!::write(pipe[1], "1", 1);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  const int64_t waited_for_child_ns = DrainWaitsFor(child);
  ::waitpid(child, nullptr, 0);
  EXPECT_GE(waited_for_child_ns, 150 * kNanosPerMilli);
}

TEST_F(HostSignalsTest, AWaitThatAProcessOutsideEndsNamesIt) {
  int go[2], done[2];
  ASSERT_EQ(::pipe(go), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    char byte = 0;
    (void)!::read(go[0], &byte, 1);
    Burn(200 * kNanosPerMilli);
    (void)!::write(done[1], "1", 1);
    ::_exit(0);
  }
  StartAgain();
  ASSERT_EQ(::write(go[1], "1", 1), 1);
  char byte = 0;
  ASSERT_EQ(::read(done[0], &byte, 1), 1);
  const int64_t waited_ns = DrainWaitsFor(child);
  ::waitpid(child, nullptr, 0);
  EXPECT_GE(waited_ns, 150 * kNanosPerMilli);
}

// As a program that starts a compiler: the child is a target, and gone when its parent runs again.
TEST_F(HostSignalsTest, AWaitThatAChildsExitEndsNamesTheChild) {
  const pid_t child = ::fork();
  if (child == 0) {
    Burn(200 * kNanosPerMilli);
    ::_exit(0);
  }
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const int64_t waited_ns = DrainWaitsFor(child);
  EXPECT_GE(waited_ns, 150 * kNanosPerMilli);
}

// Of a child that computes: the time of its stops that this process ended.
class StoppedChildTest : public HostSignalsTest {
 protected:
  void SetUp() override {
    HostSignalsTest::SetUp();
    if (IsSkipped()) return;
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (;;) Burn(kNanosPerSecond);
    }
  }
  void TearDown() override {
    if (child_ <= 0) return;
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }

  // Ends with the child running again. Its time is only counted once it was seen to run.
  int64_t StoppedNs() {
    int64_t stopped_ns = 0;
    const int64_t deadline_ns = MonotonicNow() + kPatienceNs;
    while (stopped_ns == 0 && MonotonicNow() < deadline_ns) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const Status drained = signals_->Drain(sources::VisitOnly([&](const SignalSum& sum) {
        if (sum.tid == child_ && sum.signal == GPUSONDE_SIGNAL_STOPPED && sum.other == ::getpid())
          stopped_ns += sum.amount;
      }));
      if (!drained.has_value()) return 0;
    }
    return stopped_ns;
  }

  static constexpr auto kPause = std::chrono::milliseconds(100);
  static constexpr int64_t kPauseNs = 100 * kNanosPerMilli;
  pid_t child_ = 0;
};

TEST_F(StoppedChildTest, ASignalStopsItUntilThisProcessContinuesIt) {
  ASSERT_EQ(::kill(child_, SIGSTOP), 0);
  ASSERT_EQ(::waitpid(child_, nullptr, WUNTRACED), child_);
  std::this_thread::sleep_for(kPause);
  ASSERT_EQ(::kill(child_, SIGCONT), 0);
  EXPECT_GE(StoppedNs(), kPauseNs);
}

TEST_F(StoppedChildTest, ATracerStopsItUntilItDetaches) {
  ASSERT_EQ(::ptrace(PTRACE_ATTACH, child_, nullptr, nullptr), 0);
  ASSERT_EQ(::waitpid(child_, nullptr, 0), child_);
  std::this_thread::sleep_for(kPause);
  ASSERT_EQ(::ptrace(PTRACE_DETACH, child_, nullptr, nullptr), 0);
  EXPECT_GE(StoppedNs(), kPauseNs);
}

struct Freezer {
  const char* hierarchy;
  const char* file;
  const char* freeze;
  const char* thaw;
};

class FrozenChildTest : public StoppedChildTest, public testing::WithParamInterface<Freezer> {};

TEST_P(FrozenChildTest, AFrozenCgroupStopsItUntilThisProcessThawsIt) {
  const std::filesystem::path group =
      std::filesystem::path(GetParam().hierarchy) / ("gpusonde-test-" + std::to_string(::getpid()));
  std::error_code failed;
  if (!std::filesystem::create_directory(group, failed))
    GTEST_SKIP() << "no freezer to use in " << GetParam().hierarchy << ": " << failed.message();
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(group / file) << text; };
  write("cgroup.procs", std::to_string(child_));
  write(GetParam().file, GetParam().freeze);
  std::this_thread::sleep_for(2 * kPause);
  write(GetParam().file, GetParam().thaw);
  EXPECT_GE(StoppedNs(), kPauseNs);
  ::kill(child_, SIGKILL);
  ::waitpid(std::exchange(child_, 0), nullptr, 0);
  std::filesystem::remove(group, failed);
}

INSTANTIATE_TEST_SUITE_P(CgroupVersions, FrozenChildTest,
                         testing::Values(Freezer{"/sys/fs/cgroup/freezer", "freezer.state", "FROZEN",
                                                 "THAWED"},
                                         Freezer{"/sys/fs/cgroup/unified", "cgroup.freeze", "1", "0"}),
                         [](const auto& freezer) { return freezer.index == 0 ? "V1" : "V2"; });

// The freezer of version 1 leaves a thread asleep where it sleeps: no switch tells that it is frozen.
TEST_F(HostSignalsTest, AFrozenCgroupStopsAThreadThatSleeps) {
  const auto group =
      std::filesystem::path("/sys/fs/cgroup/freezer") / ("gpusonde-sleep-" + std::to_string(::getpid()));
  std::error_code failed;
  if (!std::filesystem::create_directory(group, failed))
    GTEST_SKIP() << "no freezer of cgroup version 1: " << failed.message();
  constexpr timespec kNap{.tv_sec = 0, .tv_nsec = 20 * kNanosPerMilli};
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::nanosleep(&kNap, nullptr);
  }
  const auto write = [&](const char* file, const std::string& text) { std::ofstream(group / file) << text; };
  write("cgroup.procs", std::to_string(child));
  for (const char* const state : {"FROZEN", "THAWED"}) {
    write("freezer.state", state);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  std::map<int32_t, int64_t> stopped_ns;                                             // by whoever ended it
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(3);  // a busy machine is slow
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ASSERT_TRUE(signals_
                    ->Drain(sources::VisitOnly([&](const SignalSum& sum) {
                      if (sum.tid == child && sum.signal == GPUSONDE_SIGNAL_STOPPED)
                        stopped_ns[sum.other] += sum.amount;
                    }))
                    .has_value());
  } while (stopped_ns.empty() && std::chrono::steady_clock::now() < deadline);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::filesystem::remove(group, failed);
  EXPECT_GE(stopped_ns[::getpid()], 180 * kNanosPerMilli) << ::testing::PrintToString(stopped_ns);
}

// The kernel marks a thread as frozen while it waits for the process that it started with vfork.
TEST_F(HostSignalsTest, AWaitForAVforkIsNoStop) {
  Drain();
  by_signal_.clear();
  if (::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0) {
    const timespec pause{.tv_sec = 0, .tv_nsec = 100 * kNanosPerMilli};
    ::nanosleep(&pause, nullptr);
    ::_exit(0);
  }
  ::wait(nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  Drain();
  EXPECT_EQ(by_signal_[GPUSONDE_SIGNAL_STOPPED], 0);
  EXPECT_GE(by_signal_[GPUSONDE_SIGNAL_BLOCKED], 90 * kNanosPerMilli);
}

// As Python's threads wait for the interpreter's lock: again and again, each time until a timer expires.
// The timer's interrupt hits another process, which is in system calls nearly all the time.
TEST_F(HostSignalsTest, AWaitForALockThatATimerEndsIsForThisProcess) {
  cpu_set_t all;
  ASSERT_EQ(::sched_getaffinity(0, sizeof all, &all), 0);
  PinToCpu(::sched_getcpu());
  const pid_t reader = ::fork();
  if (reader == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    static char buffer[1 << 20];
    while (::read(zeros, buffer, sizeof buffer) > 0) continue;
    ::_exit(1);
  }
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock lock(mutex);
  for (int i = 0; i < 20; ++i) condition.wait_for(lock, std::chrono::milliseconds(5));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const int64_t waited_ns = DrainWaitsFor(::getpid());
  ::kill(reader, SIGKILL);
  ::waitpid(reader, nullptr, 0);
  ASSERT_EQ(::sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_GE(waited_ns, 90 * kNanosPerMilli);
}

TEST_F(HostSignalsTest, ReportsNothingAfterStop) {
  signals_->Stop();
  Drain();
  by_signal_.clear();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  Drain();
  EXPECT_TRUE(by_signal_.empty());
}

}  // namespace
}  // namespace gpusonde::ebpf
