// SPDX-License-Identifier: Apache-2.0
#include "agent/process_table.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_set>

#include "agent/rows_testing.h"
#include "base/fd.h"
#include "base/time.h"

namespace gpusonde::agent {
namespace {

using testing::Contains;
using testing::ElementsAre;

// No process has a pid this large: the kernel's limit is 2^22.
constexpr int32_t kGone = 1 << 30;

// Of one thread: ThreadSanitizer starts another in a child of fork().
pid_t ForkPaused() {
  const pid_t child = ::_Fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  return child;
}

// A child that executes a copy of /bin/sleep in a memfd, once it does so; without one that may be executed,
// -1.
pid_t ExecuteFromMemfd(const char* name) {
  const Fd program(::memfd_create(name, MFD_CLOEXEC));
  std::ifstream file("/bin/sleep", std::ios::binary);
  const std::string content(std::istreambuf_iterator<char>(file), {});
  std::array<int, 2> executed{};
  if (!WriteAll(program.get(), std::as_bytes(std::span(content))).has_value() ||
      ::pipe2(executed.data(), O_CLOEXEC) != 0)
    return -1;
  const pid_t child = ::_Fork();
  if (child == 0) {
    std::array<char*, 3> arguments = {const_cast<char*>("sleep"), const_cast<char*>("100"), nullptr};
    ::fexecve(program.get(), arguments.data(), environ);
    ::_exit(1);
  }
  ::close(executed[1]);
  char end = 0;
  (void)!::read(executed[0], &end, 1);  // until the exec has closed the other end
  ::close(executed[0]);
  return child;
}

// Kills a child and returns once it has ended; it still has to be waited for.
bool MakeZombie(pid_t child) {
  siginfo_t ended;
  return ::kill(child, SIGKILL) == 0 &&
         ::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0;
}

// The same size and place in a child of fork() as here.
std::span<char> OwnArguments() {
  std::ifstream file("/proc/self/stat");
  const std::string stat(std::istreambuf_iterator<char>(file), {});
  std::istringstream fields(stat.substr(stat.rfind(')') + 1));
  std::string skipped;
  for (int field = 3; field < 48; ++field) fields >> skipped;
  uintptr_t start = 0, end = 0;
  fields >> start >> end;
  return {std::bit_cast<char*>(start), std::bit_cast<char*>(end)};
}

bool WriteMemory(pid_t pid, std::span<char> place, std::string& text) {
  const iovec from{text.data(), text.size()}, to{place.data(), text.size()};
  return ::process_vm_writev(pid, &from, 1, &to, 1, 0) == static_cast<ssize_t>(text.size());
}

class ProcessTableTest : public testing::Test {
 protected:
  ProcessTable Make(bool every_process = false) {
    return ProcessTable({.host = {.name = "host", .boot_id = "boot", .kernel_release = "6", .cpus = 2},
                         .source = {1, 2},
                         .epoch_offset_ns = 1000,
                         .every_process = every_process},
                        binaries_, rows_);
  }
  static perf::SidebandEvent Event(int64_t time_ns, auto what) {
    return {.time_ns = time_ns, .what = std::move(what)};
  }

  symbols::BinaryTable binaries_;
  Rows rows_;
  const int32_t self_ = ::getpid();
  int64_t now_ = MonotonicNow() + kNanosPerSecond;  // later than anything that /proc shows
};

TEST_F(ProcessTableTest, AForkedChildBeginsWithItsParentsMappings) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  const uint64_t here = reinterpret_cast<uint64_t>(&::getenv);
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  Process& child = table.FindSampled(kGone, now_ + 1);
  ASSERT_NE(child.mappings.Find(here), nullptr);
  EXPECT_THAT(child.mappings.Find(here)->binary->name, testing::StartsWith("libc"));
  EXPECT_EQ(child.info.parent_pid, self_);
  EXPECT_EQ(child.started_ns / 10'000'000, (now_ + 1000) / 10'000'000) << "to the tick";
}

TEST_F(ProcessTableTest, AnExecutedProgramIsInTheCgroupItWasMovedTo) {
  const std::filesystem::path cgroup = fmt::format("/sys/fs/cgroup/cpu/gpusonde_test_{}", self_);
  std::error_code error;
  if (!std::filesystem::create_directory(cgroup, error))
    GTEST_SKIP() << "needs root and cgroup v1 with its controller cpu";
  // As container runtimes do it: fork, move, exec.
  const pid_t child = ForkPaused();
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  std::ofstream(cgroup / "cgroup.procs") << child;
  EXPECT_NE(table.FindSampled(child, now_).info.cgroup, "/" + cgroup.filename().string());
  table.Apply(Event(now_, perf::CommEvent{.pid = child, .tid = child, .exec = true, .name = "new"}));
  EXPECT_EQ(table.FindSampled(child, now_).info.cgroup, "/" + cgroup.filename().string());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::filesystem::remove(cgroup);
}

TEST_F(ProcessTableTest, ACommandLineThatIsNotThereYetIsReadLater) {
  const std::span<char> place = OwnArguments();
  std::string arguments(place.begin(), place.end()), nothing(place.size(), '\0');
  const pid_t child = ForkPaused();
  if (!WriteMemory(child, place, nothing)) GTEST_SKIP() << "may not write to a child's memory";
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  ASSERT_EQ(table.FindSampled(child, now_).info.command, "");
  table.WriteChanges();
  ASSERT_TRUE(WriteMemory(child, place, arguments));
  table.WriteChanges();
  table.WriteChanges();
  EXPECT_THAT(TextColumn(rows_.Take(), "processes", "command"),
              ElementsAre("", testing::HasSubstr("gpusonde_agent_test")));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(ProcessTableTest, AForkedChildIsNotTheFormerOwnerOfItsPid) {
  ProcessTable table = Make(/*every_process=*/true);
  ASSERT_TRUE(table.Follow(self_).has_value());
  const Id128 former = table.FindSampled(kGone, now_).id;  // whose exit was lost
  table.Apply(Event(now_ + kNanosPerSecond,
                    perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_, .parent_tid = self_}));
  const Process& child = table.FindSampled(kGone, now_ + 2 * kNanosPerSecond);
  EXPECT_NE(child.id, former);
  EXPECT_EQ(child.info.parent_pid, self_);
  EXPECT_EQ(table.Find(kGone), child.id);
  table.WriteChanges();
  const std::vector<int64_t> exits = FixedColumn<int64_t>(rows_.Take(), "processes", "exited_ns");
  EXPECT_THAT(exits, Contains(now_ + kNanosPerSecond + 1000)) << "the former owner has ended";
}

// As when forks are found by polling /proc.
TEST_F(ProcessTableTest, AForkThatIsReportedLateIsThatOfTheKnownProcess) {
  const pid_t child = ForkPaused();
  ProcessTable table = Make();
  const Id128 id = table.FindSampled(child, now_).id;
  table.Apply(
      Event(now_ + kNanosPerSecond, perf::ForkEvent{.pid = child, .tid = child, .parent_pid = self_}));
  EXPECT_EQ(table.FindSampled(child, now_).id, id);
  table.WriteChanges();
  EXPECT_EQ(FixedColumn<int64_t>(rows_.Take(), "processes", "exited_ns"), std::vector<int64_t>{0});
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST_F(ProcessTableTest, ChildrenOfUnfollowedProcessesAreIgnored) {
  ProcessTable table = Make();
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = kGone + 1}));
  EXPECT_TRUE(table.living().empty());
}

TEST_F(ProcessTableTest, ANewThreadOfAnUnknownProcessDoesNotMakeItKnown) {
  ProcessTable table = Make(/*every_process=*/true);
  table.Apply(Event(now_, perf::ForkEvent{.pid = self_, .tid = kGone, .parent_pid = self_}));
  EXPECT_TRUE(table.living().empty());
}

TEST_F(ProcessTableTest, ANewThreadHasTheNameOfTheThreadThatMadeIt) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.Apply(Event(now_, perf::CommEvent{.pid = self_, .tid = kGone, .name = "pool"}));
  table.Apply(Event(
      now_ + 1, perf::ForkEvent{.pid = self_, .tid = kGone + 1, .parent_pid = self_, .parent_tid = kGone}));
  table.Apply(Event(now_ + 2, perf::CommEvent{.pid = self_, .tid = kGone, .name = "renamed"}));
  table.WriteChanges();
  EXPECT_THAT(TextColumn(rows_.Take(), "threads", "name"), Contains("pool"));
}

TEST_F(ProcessTableTest, AMappingThatIsReportedAgainHasOneRow) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.WriteChanges();
  (void)rows_.Take();
  const Process& self = table.FindSampled(self_, now_);
  for (int64_t flip = 0; flip < 3; ++flip)
    table.Apply(Event(now_ + flip,
                      perf::MapEvent{.pid = self_, .start = 0x1000, .length = 0x2000, .path = "//anon"}));
  const uint64_t generation = self.mappings.generation();
  table.Apply(
      Event(now_ + 3, perf::MapEvent{.pid = self_, .start = 0x2000, .length = 0x1000, .path = "//anon"}));
  EXPECT_EQ(self.mappings.generation(), generation);
  EXPECT_EQ(FixedColumn<int64_t>(rows_.Take(), "mappings", "start_address"), std::vector<int64_t>{0x1000});
}

TEST_F(ProcessTableTest, MappingsWithoutEndStayBounded) {
  ProcessTable table = Make(/*every_process=*/true);
  ASSERT_TRUE(table.Follow(self_).has_value());
  for (uint64_t i = 0; i < 10 * ProcessTable::kMaxMappings; ++i)
    table.Apply(Event(
        now_, perf::MapEvent{.pid = self_, .start = (2 * i + 1) << 12, .length = 0x1000, .path = "//anon"}));
  const Process& self = table.FindSampled(self_, now_);
  EXPECT_LE(self.mappings.size(), ProcessTable::kMaxMappings);
  EXPECT_NE(self.mappings.Find(reinterpret_cast<uint64_t>(&::getenv)), nullptr) << "what is mapped stays";
}

TEST_F(ProcessTableTest, ExecForgetsMappingsAndRenames) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.Apply(Event(now_ + 1, perf::CommEvent{.pid = kGone, .tid = kGone, .exec = true, .name = "new"}));
  table.Apply(
      Event(now_ + 2, perf::MapEvent{.pid = kGone, .start = 0x1000, .length = 0x1000, .path = "/bin/new"}));
  Process& child = table.FindSampled(kGone, now_ + 3);
  EXPECT_EQ(child.mappings.Find(reinterpret_cast<uint64_t>(&::getenv)), nullptr);
  EXPECT_EQ(child.mappings.Find(0x1800)->binary->path, "/bin/new");
  EXPECT_EQ(child.info.command, "") << "its parent's isn't its own";
  EXPECT_EQ(child.info.executable, "");
  table.WriteChanges();
  EXPECT_THAT(TextColumn(rows_.Take(), "processes", "name"), Contains("new"));
}

TEST_F(ProcessTableTest, AProgramThatIsExecutedFromAMemfdIsNoJitCode) {
  const pid_t child = ExecuteFromMemfd("program");
  ASSERT_GT(child, 0);
  const std::string path = "/memfd:program (deleted)";
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  const Process& process = table.FindSampled(child, now_);
  EXPECT_EQ(process.info.executable, path);
  std::vector<std::string> names;
  process.mappings.ForEach([&](const AddressSpace::Mapping& mapping) {
    names.push_back(mapping.binary == nullptr ? "" : mapping.binary->name);
  });
  EXPECT_THAT(names, Contains("memfd:program")) << "as /proc shows it";
  for (const std::string& mapped : {path, std::string("/memfd:jit (deleted)")}) {
    table.Apply(Event(now_, perf::MapEvent{.pid = child, .start = 0x1000, .length = 0x1000, .path = mapped}));
    EXPECT_EQ(process.mappings.Find(0x1800)->binary != nullptr, mapped == path) << mapped;
  }
  ASSERT_TRUE(MakeZombie(child));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(ProcessTableTest, AProcessEndsWithItsLastThread) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.Apply(Event(now_ + 1, perf::ForkEvent{.pid = kGone, .tid = kGone + 1, .parent_pid = kGone}));
  table.Apply(Event(now_ + 2, perf::ExitEvent{.pid = kGone, .tid = kGone}));
  EXPECT_FALSE(table.FindSampled(kGone, now_ + 3).exited_ns.has_value());
  table.Apply(Event(now_ + 4, perf::ExitEvent{.pid = kGone, .tid = kGone + 1}));

  const Id128 id = table.FindSampled(kGone, now_ + 5).id;  // during its exit
  table.WriteChanges();
  rows_.Take();
  EXPECT_EQ(table.FindSampled(kGone, now_ + 6).id, id) << "kept for one more round";
  EXPECT_EQ(table.FindSampled(kGone, now_ + 6).exited_ns, now_ + 4 + 1000);
  table.WriteChanges();
  EXPECT_NE(table.FindSampled(kGone, now_ + kNanosPerSecond).id, id) << "a new process that reuses the pid";
}

TEST_F(ProcessTableTest, AProcessOutlivesTheExitThatTheKernelReportsWhenAProgramChangesItsUser) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  const perf::ExitEvent exit{.pid = self_, .tid = self_};
  EXPECT_FALSE(table.Outlives(exit)) << "there was no exec";
  table.Apply(Event(now_, perf::CommEvent{.pid = self_, .tid = self_, .exec = true, .name = "sudo"}));
  EXPECT_TRUE(table.Outlives(exit));
  EXPECT_FALSE(table.Outlives({.pid = kGone, .tid = kGone}));
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  EXPECT_FALSE(table.Outlives({.pid = kGone, .tid = kGone})) << "it has ended";
}

TEST_F(ProcessTableTest, AfterLostEventsItAgreesWithProc) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  // Lost exit events: of a child and of one of our threads.
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.Apply(Event(now_, perf::ForkEvent{.pid = self_, .tid = kGone + 1, .parent_pid = self_}));
  // A lost fork event.
  std::latch named(1), done(1);
  std::atomic<int32_t> tid = 0;
  std::jthread thread([&] {
    ::prctl(PR_SET_NAME, "newcomer");
    tid = ::gettid();
    named.count_down();
    done.wait();
  });
  named.wait();
  EXPECT_THAT(table.Resync(now_ + 5), ElementsAre(kGone));
  EXPECT_FALSE(table.Runs(kGone));
  EXPECT_EQ(table.FindSampled(kGone, now_ + 6).exited_ns, now_ + 5 + 1000);
  const Process& self = table.FindSampled(self_, now_ + 6);
  EXPECT_FALSE(self.exited_ns.has_value());
  EXPECT_EQ(self.threads.at(tid).name, "newcomer");
  EXPECT_EQ(self.threads.at(kGone + 1).exited_ns, now_ + 5 + 1000);
  EXPECT_EQ(self.living_threads, std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}))
      << "this one, the newcomer, and ThreadSanitizer's own";
  EXPECT_NE(self.mappings.Find(reinterpret_cast<uint64_t>(&::getenv)), nullptr);
  done.count_down();
}

TEST_F(ProcessTableTest, AProgramWhoseExecWasLostReplacesTheFormerOne) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root: the program has another user";
  constexpr uid_t kNobody = 65534;
  std::array<int, 2> go{}, executed{};
  ASSERT_EQ(::pipe(go.data()), 0);
  ASSERT_EQ(::pipe2(executed.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1 || ::setuid(kNobody) != 0) ::_exit(1);
    ::execl("/bin/sleep", "sleep", "1000", nullptr);
    ::_exit(1);
  }
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  table.FindSampled(child, now_).runs_anonymous_code = true;
  ASSERT_EQ(::write(go[1], "", 1), 1);
  ::close(executed[1]);
  char byte = 0;
  ASSERT_EQ(::read(executed[0], &byte, 1), 0) << "the exec has closed it";
  EXPECT_THAT(table.Resync(now_ + 1), testing::IsEmpty());
  const Process& process = table.FindSampled(child, now_ + 1);
  EXPECT_EQ(process.info.name, "sleep");
  EXPECT_EQ(process.info.user_id, static_cast<int32_t>(kNobody));
  EXPECT_FALSE(process.runs_anonymous_code) << "the former program did";
  EXPECT_EQ(process.mappings.Find(reinterpret_cast<uint64_t>(&::getenv)), nullptr);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  for (const int fd : {go[0], go[1], executed[0]}) ::close(fd);
}

TEST_F(ProcessTableTest, AZombieKeepsWhatWasKnownOfItsProgram) {
  const pid_t child = ForkPaused();
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  const proc::ProcessInfo before = table.FindSampled(child, now_).info;
  ASSERT_FALSE(before.command.empty());
  ASSERT_TRUE(MakeZombie(child));
  table.Resync(now_ + 1);
  const Process& process = table.FindSampled(child, now_ + 1);
  EXPECT_EQ(process.info.command, before.command);
  EXPECT_EQ(process.info.executable, before.executable);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(ProcessTableTest, EventsFromBeforeAProcessWasReadAreIgnored) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.Apply(Event(1, perf::CommEvent{.pid = self_, .tid = self_, .exec = true, .name = "before"}));
  Process& process = table.FindSampled(self_, now_);
  EXPECT_NE(process.info.name, "before");
  EXPECT_NE(process.mappings.Find(reinterpret_cast<uint64_t>(&::getenv)), nullptr);
}

TEST_F(ProcessTableTest, AProcessThatEndsWhileItIsReadEnds) {
  const pid_t child = ForkPaused();
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(child).has_value());
  table.Apply(Event(1, perf::ExitEvent{.pid = child, .tid = child}));
  EXPECT_TRUE(table.Runs(child)) << "another thread had its tid before";
  ASSERT_TRUE(MakeZombie(child));
  // It was listed after its exit event.
  table.Apply(Event(1, perf::ExitEvent{.pid = child, .tid = child}));
  EXPECT_FALSE(table.Runs(child));
  EXPECT_EQ(Make().Follow(child).error().code, ErrorCode::kNotFound) << "a zombie";
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
}

TEST_F(ProcessTableTest, OfTheWholeMachineOnlySampledProcessesHaveRows) {
  ProcessTable table = Make(/*every_process=*/true);
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.WriteChanges();
  EXPECT_TRUE(rows_.Take().empty());
  table.FindSampled(self_, now_ + 1);
  table.WriteChanges();
  const std::vector<model::Batch> batches = rows_.Take();
  EXPECT_THAT(FixedColumn<int32_t>(batches, "processes", "pid"), ElementsAre(self_));
  EXPECT_FALSE(FixedColumn<int64_t>(batches, "mappings", "start_address").empty());
}

TEST_F(ProcessTableTest, AProcessFirstSampledDuringItsExitHasItsRow) {
  ProcessTable table = Make(/*every_process=*/true);
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.Apply(Event(now_ + 1, perf::ExitEvent{.pid = kGone, .tid = kGone}));
  table.WriteChanges();
  table.FindSampled(kGone, now_ + 2);
  table.WriteChanges();
  EXPECT_THAT(FixedColumn<int32_t>(rows_.Take(), "processes", "pid"), ElementsAre(kGone));
}

TEST_F(ProcessTableTest, WhatRowsToComeReferToIsWrittenAgainAfterRewrite) {
  ProcessTable table = Make(/*every_process=*/true);
  table.Apply(Event(now_, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
  table.FindSampled(kGone, now_ + 1);
  table.Apply(Event(now_ + 2, perf::ExitEvent{.pid = kGone, .tid = kGone}));
  const Id128 self = table.FindSampled(self_, now_ + 2).id;
  table.WriteChanges();
  rows_.Take();

  table.Rewrite();
  table.FindSampled(kGone, now_ + 3);  // a sample of its way out
  table.WriteAgain(self_, self);       // it waits, and nothing samples it
  table.WriteAgain(self_, {1, 2});     // another process had the pid
  table.WriteChanges();
  EXPECT_THAT(FixedColumn<int32_t>(rows_.Take(), "processes", "pid"),
              testing::UnorderedElementsAre(kGone, self_));
}

TEST_F(ProcessTableTest, RowsAreWrittenOnceAndAgainAfterRewrite) {
  ProcessTable table = Make();
  ASSERT_TRUE(table.Follow(self_).has_value());
  table.WriteChanges();
  const std::vector<model::Batch> first = rows_.Take();
  EXPECT_THAT(FixedColumn<int32_t>(first, "processes", "pid"), ElementsAre(self_));
  table.WriteChanges();
  EXPECT_TRUE(rows_.Take().empty());
  table.Rewrite();
  table.WriteChanges();
  const std::vector<model::Batch> again = rows_.Take();
  for (const auto* table_name : {"processes", "threads", "binaries", "mappings"})
    EXPECT_EQ(std::ranges::count(again, table_name, &model::Batch::table),
              std::ranges::count(first, table_name, &model::Batch::table))
        << table_name;
}

TEST_F(ProcessTableTest, ThatRowsOfForgottenBinariesWereWrittenIsForgotten) {
  ProcessTable table = Make(/*every_process=*/true);
  // Runs a process with this file from begin to end; the paths whose rows are written meanwhile.
  const auto run = [&](int64_t time_ns) {
    table.Apply(Event(time_ns, perf::ForkEvent{.pid = kGone, .tid = kGone, .parent_pid = self_}));
    table.Apply(Event(time_ns, perf::CommEvent{.pid = kGone, .tid = kGone, .exec = true, .name = "short"}));
    table.Apply(Event(time_ns, perf::MapEvent{.pid = kGone, .start = 1, .length = 1, .path = "/gone"}));
    table.FindSampled(kGone, time_ns);
    table.Apply(Event(time_ns, perf::ExitEvent{.pid = kGone, .tid = kGone}));
    for (int round = 0; round < 3; ++round) table.WriteChanges();
    return TextColumn(rows_.Take(), "binaries", "path");
  };
  EXPECT_THAT(run(now_), ElementsAre("/gone"));
  EXPECT_THAT(run(now_ + 1), testing::IsEmpty()) << "once";
  std::unordered_set<const symbols::BinaryTable::Binary*> used;
  table.AddMapped(used);
  binaries_.ForgetExcept(used);
  table.ForgetBinaries();
  EXPECT_THAT(run(now_ + 2), ElementsAre("/gone"));
}

}  // namespace
}  // namespace gpusonde::agent
