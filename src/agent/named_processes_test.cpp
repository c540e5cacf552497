// SPDX-License-Identifier: Apache-2.0
#include "agent/named_processes.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

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

  std::optional<ebpf::HostSignals::Other> other_;  // what the kernel knows of any pid
  NamedProcesses processes_{[this](int32_t) { return other_; }};
};

TEST_F(NamedProcessesTest, ARunningProcessGetsItsRowOnce) {
  processes_.SetSource({7, 7}, 0);
  for (int round = 0; round < 2; ++round) {
    processes_.BeginRound();
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
  processes_.BeginRound();
  (void)processes_.Identify(::getpid());
  EXPECT_EQ(Rows().size(), 1u) << "a new store needs it";
}

TEST_F(NamedProcessesTest, AProcessWithARowOfOthersGetsNone) {
  model::BatchBuilder<decltype(model::kProcesses)> others{model::kProcesses};
  others.Append(
      {.process = OwnId(), .pid = ::getpid(), .name = proc::ReadProcessStat(::getpid()).value().name});
  processes_.Ingest(others.Take());
  EXPECT_EQ(processes_.Identify(::getpid()), OwnId());
  EXPECT_TRUE(Rows().empty());
}

TEST_F(NamedProcessesTest, AProcessWithAnotherNameGetsAnotherRow) {
  model::BatchBuilder<decltype(model::kProcesses)> others{model::kProcesses};
  others.Append({.process = OwnId(), .pid = ::getpid(), .name = "before exec"});
  processes_.Ingest(others.Take());
  (void)processes_.Identify(::getpid());
  ASSERT_EQ(Rows().size(), 1u);
}

TEST_F(NamedProcessesTest, AnEndedProcessIsTheOneThatTheKernelKnew) {
  const int32_t pid = EndedPid();
  EXPECT_EQ(processes_.Identify(pid), std::nullopt) << "nobody knows it";
  other_ = {.name = "cc1plus", .start_ticks = 1234};
  EXPECT_EQ(processes_.Identify(pid), std::nullopt) << "a pid is looked up once per round";
  processes_.BeginRound();
  const Id128 id = proc::MakeProcessId(proc::ReadHost().boot_id, pid, 1234);
  EXPECT_EQ(processes_.Identify(pid), id);
  const std::vector<model::Process> rows = Rows();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "cc1plus");
  EXPECT_TRUE(rows[0].command.empty());
  // The kernel forgets it; late signals still find it.
  other_.reset();
  processes_.BeginRound();
  EXPECT_EQ(processes_.Identify(pid), id);
}

}  // namespace
}  // namespace gpusonde::agent
