// SPDX-License-Identifier: Apache-2.0
#include "agent/named_processes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "base/time.h"
#include "diagnose/actors.h"
#include "model/batch_rows.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

class NamedProcessesTest : public testing::Test {
 protected:
  std::vector<model::Process> Rows() {
    const std::optional<model::Batch> batch = processes_.DrainRows();
    return batch.has_value() ? model::RowsOf(model::kProcesses, *batch) : std::vector<model::Process>();
  }
  void NextRound(int64_t after_ns = kNanosPerSecond) { processes_.BeginRound(now_ns_ += after_ns); }
  void AddRowOfOthers(const model::Process& row) {
    model::BatchBuilder<decltype(model::kProcesses)> others{model::kProcesses};
    others.Append(row);
    processes_.Ingest(others.Take());
  }
  static Id128 OwnId() {
    return proc::MakeProcessId(proc::ReadHost().boot_id, ::getpid(),
                               proc::ReadProcessStat(::getpid()).value().start_ticks);
  }
  // Of a process that has ended.
  static int32_t EndedPid() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    ::waitpid(child, nullptr, 0);
    return child;
  }

  // Runs until it is given to Reap.
  static int32_t RunningPid() {
    const pid_t child = ::fork();
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    return child;
  }
  static void Reap(int32_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  int64_t now_ns_ = MonotonicNow();
  std::optional<ebpf::HostSignals::Other> other_;  // what the kernel knows of any pid
  NamedProcesses processes_{[this](int32_t) { return other_; }};
};

TEST_F(NamedProcessesTest, ARunningProcessGetsItsRowOnce) {
  processes_.SetSource({7, 7}, 0);
  for (int round = 0; round < 2; ++round) {
    NextRound();
    EXPECT_EQ(processes_.Identify(::getpid()), OwnId());
    EXPECT_EQ(processes_.Identify(::getpid()), OwnId());
    const std::vector<model::Process> rows = Rows();
    ASSERT_EQ(rows.size(), round == 0 ? 1u : 0u);
    if (round > 0) continue;
    EXPECT_EQ(rows[0].process, OwnId());
    EXPECT_EQ(rows[0].source, (Id128{7, 7}));
    EXPECT_EQ(rows[0].parent_pid, ::getppid());
    EXPECT_FALSE(rows[0].command.empty());
  }
  processes_.Rewrite();
  NextRound();
  (void)processes_.Identify(::getpid());
  EXPECT_EQ(Rows().size(), 1u) << "a new store needs it";
}

TEST_F(NamedProcessesTest, AProcessWithARowOfOthersGetsNone) {
  AddRowOfOthers(
      {.process = OwnId(), .pid = ::getpid(), .name = proc::ReadProcessStat(::getpid()).value().name});
  EXPECT_EQ(processes_.Identify(::getpid()), OwnId());
  EXPECT_TRUE(Rows().empty());
}

TEST_F(NamedProcessesTest, AProcessWithAnotherNameGetsAnotherRow) {
  AddRowOfOthers({.process = OwnId(), .pid = ::getpid(), .name = "before exec"});
  (void)processes_.Identify(::getpid());
  ASSERT_EQ(Rows().size(), 1u);
}

TEST_F(NamedProcessesTest, AnEndedProcessIsTheOneThatTheKernelKnew) {
  const int32_t pid = EndedPid();
  EXPECT_EQ(processes_.Identify(pid), std::nullopt) << "nobody knows it";
  other_ = {.name = "cc1plus", .start_ticks = 1234};
  EXPECT_EQ(processes_.Identify(pid), std::nullopt) << "a pid is looked up once per round";
  NextRound();
  const Id128 id = proc::MakeProcessId(proc::ReadHost().boot_id, pid, 1234);
  EXPECT_EQ(processes_.Identify(pid), id);
  const std::vector<model::Process> rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "cc1plus");
  EXPECT_TRUE(rows[0].command.empty());
  // The kernel forgets it; late signals still find it.
  other_.reset();
  NextRound();
  EXPECT_EQ(processes_.Identify(pid), id);
}

TEST_F(NamedProcessesTest, AnEndThatNobodyElseReportsIsWritten) {
  processes_.SetSource({7, 7}, 1'000);
  const int32_t pid = RunningPid();
  NextRound();
  const Id128 id = processes_.Identify(pid).value();
  const model::Process begun = Rows().at(0);
  NextRound(NamedProcesses::kCheckNs);
  EXPECT_TRUE(Rows().empty()) << "it runs";
  Reap(pid);
  NextRound(NamedProcesses::kCheckNs);
  const int64_t missing_ns = now_ns_;
  EXPECT_TRUE(Rows().empty()) << "others, who know the time better, may report it yet";
  NextRound(NamedProcesses::kCheckNs);
  const std::vector<model::Process> rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].process, id);
  EXPECT_EQ(rows[0].exited_ns, missing_ns + 1'000);
  EXPECT_EQ(rows[0].started_ns, begun.started_ns);
  EXPECT_EQ(rows[0].command, begun.command) << "the row replaces the first one";
  NextRound(NamedProcesses::kCheckNs);
  EXPECT_TRUE(Rows().empty());
}

TEST_F(NamedProcessesTest, AnEndThatOthersReportIsNotWrittenAgain) {
  const int32_t pid = EndedPid();
  AddRowOfOthers({.process = {1, 1}, .pid = pid, .name = "train"});
  NextRound(NamedProcesses::kCheckNs);
  AddRowOfOthers({.process = {1, 1}, .pid = pid, .name = "train", .exited_ns = 5});
  NextRound(NamedProcesses::kCheckNs);
  EXPECT_TRUE(Rows().empty());
}

TEST_F(NamedProcessesTest, TheFormerOwnerOfAReusedPidHasEnded) {
  NextRound();
  AddRowOfOthers({.process = {1, 1}, .pid = ::getpid(), .name = "old", .command = "old -v"});
  EXPECT_EQ(processes_.Identify(::getpid()), OwnId());
  (void)Rows();
  for (int check = 0; check < 2; ++check) NextRound(NamedProcesses::kCheckNs);
  const std::vector<model::Process> rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].process, (Id128{1, 1}));
  EXPECT_EQ(rows[0].command, "old -v");
  EXPECT_TRUE(rows[0].exited_ns.has_value());
}

// At midnight, rows are written to a new store; a process that nothing refers to afterwards has none there.
TEST_F(NamedProcessesTest, AnEndIsWrittenAlsoAfterARewrite) {
  const int32_t pid = RunningPid();
  NextRound();
  (void)processes_.Identify(pid);
  (void)Rows();
  processes_.Rewrite();
  Reap(pid);
  for (int check = 0; check < 2; ++check) NextRound(NamedProcesses::kCheckNs);
  ASSERT_EQ(Rows().size(), 1u);
}

TEST_F(NamedProcessesTest, EndedProcessesAreForgottenHereAndByTheDiagnosis) {
  diagnose::Actors actors;
  const auto ingest = [&] {
    for (const model::Process& row : Rows()) actors.Ingest(row);
  };
  NextRound();
  const Id128 self = processes_.Identify(::getpid()).value();
  for (int child = 0; child < 100; ++child) {
    const int32_t pid = RunningPid();
    (void)processes_.Identify(pid);
    Reap(pid);
  }
  ingest();
  EXPECT_EQ(actors.FamilyOf(self).size(), 101u);
  for (int check = 0; check < 10; ++check) NextRound(NamedProcesses::kCheckNs);
  ingest();
  actors.ForgetEndedBefore(now_ns_);
  EXPECT_THAT(actors.FamilyOf(self), testing::ElementsAre(self));
  EXPECT_EQ(processes_.size(), 1u);
  EXPECT_EQ(processes_.Identify(::getpid()), self);
}

}  // namespace
}  // namespace gpusonde::agent
