// SPDX-License-Identifier: Apache-2.0
#include "agent/silent_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "model/batch_rows.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr Id128 kSilent{2, 0};

// A child of this process whose threads do nothing, or of which the last one waits for a child as in
// vfork(2), which blocks it as a disk does.
class SilentProcessesTest : public testing::Test {
 protected:
  void Start(bool in_vfork, int more_threads = 0) {
    child_ = ::fork();
    if (child_ != 0) return;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < more_threads; ++i)
      std::thread([&, is_last = i + 1 == more_threads] { DoNothing(in_vfork && is_last); }).detach();
    DoNothing(in_vfork && more_threads == 0);
  }
  [[noreturn]] static void DoNothing(bool in_vfork) {
    // ThreadSanitizer makes fork() of vfork().
    if (!in_vfork || ::syscall(SYS_clone, CLONE_VFORK | SIGCHLD, nullptr, nullptr, nullptr, nullptr) == 0)
      for (;;) ::pause();
    ::_exit(0);
  }
  void TearDown() override {
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
  }
  void AwaitState(char state) const {
    while (proc::ReadProcessStat(child_).value().state != state) ::usleep(1000);
  }
  std::vector<int32_t> AwaitThreads(size_t threads, char state_of_last) const {
    std::vector<int32_t> tids;
    while (tids.size() < threads || proc::ReadThreadState(child_, tids.back()) != state_of_last) {
      ::usleep(1000);
      tids.clear();
      for (const proc::ThreadInfo& thread : proc::ReadThreads(child_)) tids.push_back(thread.tid);
    }
    return tids;
  }

  // (metric, ns) of what is written at a second of the clock.
  std::vector<std::pair<std::string, int64_t>> Write(int64_t second, bool stops_known = false) {
    model::BatchBuilder<decltype(model::kSignals)> rows(model::kSignals);
    silent_.Write(
        Id128{1, 0}, 0, second * kNanosPerSecond, [](int32_t) { return std::optional(kSilent); },
        [&](int32_t) { return stops_known; }, rows);
    std::vector<std::pair<std::string, int64_t>> written;
    for (const model::Signal& row : model::RowsOf(model::kSignals, rows.Take())) {
      EXPECT_EQ(row.process, kSilent);
      EXPECT_EQ(row.start_ns + row.bucket_ns, second * kNanosPerSecond);
      written.emplace_back(row.metric, row.values.at(0));
    }
    return written;
  }

  SilentProcesses silent_;
  pid_t child_ = 0;
};

TEST_F(SilentProcessesTest, AProcessThatIsStoppedIsReportedOnceItIsSilent) {
  Start(false);
  ::kill(child_, SIGSTOP);
  AwaitState('T');
  silent_.NoteActivity(child_, child_, 10 * kNanosPerSecond);
  EXPECT_THAT(Write(10), IsEmpty());
  EXPECT_THAT(Write(11), IsEmpty()) << "it was heard of one second ago";
  EXPECT_THAT(Write(12), ElementsAre(Pair("process.stopped", kNanosPerSecond)));
  EXPECT_THAT(Write(12), IsEmpty()) << "it was read just now";
  EXPECT_THAT(Write(14), ElementsAre(Pair("process.stopped", 2 * kNanosPerSecond)));
  silent_.NoteActivity(child_, child_, 14 * kNanosPerSecond);
  EXPECT_THAT(Write(15), IsEmpty());
}

TEST_F(SilentProcessesTest, AStopThatAnotherPartReportsIsNotReportedTwice) {
  Start(false);
  ::kill(child_, SIGSTOP);
  AwaitState('T');
  silent_.NoteActivity(child_, child_, kNanosPerSecond);
  EXPECT_THAT(Write(2), IsEmpty());
  EXPECT_THAT(Write(5, true), IsEmpty());
}

TEST_F(SilentProcessesTest, AProcessThatIsBlockedInTheKernelIsReported) {
  Start(true);
  AwaitState('D');
  silent_.NoteActivity(child_, child_, kNanosPerSecond);
  EXPECT_THAT(Write(4), IsEmpty()) << "there was no reading before";
  EXPECT_THAT(Write(5, true), ElementsAre(Pair("process.blocked", kNanosPerSecond)));
}

TEST_F(SilentProcessesTest, AProcessWithAnyThreadThatIsBlockedIsReportedOnce) {
  Start(true, 1);
  for (const int32_t tid : AwaitThreads(2, 'D')) silent_.NoteActivity(child_, tid, kNanosPerSecond);
  Write(4);
  EXPECT_THAT(Write(5), ElementsAre(Pair("process.blocked", kNanosPerSecond)));
  silent_.NoteActivity(child_, child_, 5 * kNanosPerSecond);
  EXPECT_THAT(Write(6), ElementsAre(Pair("process.blocked", kNanosPerSecond))) << "the other one is silent";
}

TEST_F(SilentProcessesTest, OfManyThreadsThoseThatSleepAreReadInTurnAndABlockedOneEachTime) {
  constexpr int kMore = 100;
  Start(true, kMore);
  for (const int32_t tid : AwaitThreads(kMore + 1, 'D')) silent_.NoteActivity(child_, tid, kNanosPerSecond);
  Write(4);
  Write(5);
  EXPECT_THAT(Write(6), ElementsAre(Pair("process.blocked", kNanosPerSecond)));
  EXPECT_THAT(Write(7), ElementsAre(Pair("process.blocked", kNanosPerSecond)));
}

TEST_F(SilentProcessesTest, AProcessThatSleepsOrHasEndedIsNot) {
  Start(false);
  AwaitState('S');
  silent_.NoteActivity(child_, child_, kNanosPerSecond);
  silent_.NoteActivity(INT32_MAX, INT32_MAX, kNanosPerSecond);
  EXPECT_THAT(Write(4), IsEmpty());
  EXPECT_THAT(Write(5), IsEmpty());
}

}  // namespace
}  // namespace gpusonde::agent
