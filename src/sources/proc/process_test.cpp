// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/process.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/time.h"

namespace gpusonde::proc {
namespace {

TEST(ReadProcess, ReadsThisProcess) {
  const ProcessInfo info = ReadProcess(::getpid()).value();
  EXPECT_EQ(info.pid, ::getpid());
  EXPECT_EQ(info.parent_pid, ::getppid());
  EXPECT_EQ(info.user_id, static_cast<int32_t>(::getuid()));
  EXPECT_THAT(info.executable, testing::HasSubstr("gpusonde_sources_proc_test"));
  EXPECT_THAT(info.command, testing::HasSubstr("gpusonde_sources_proc_test"));
  EXPECT_LT(std::abs(MonotonicFromTicks(info.start_ticks) - MonotonicNow()), 600 * kNanosPerSecond);
}

TEST(ReadProcess, ReadsNamesWithParenthesesAndSpaces) {
  char before[16];
  ASSERT_EQ(::prctl(PR_GET_NAME, before), 0);
  ASSERT_EQ(::prctl(PR_SET_NAME, "a) R 1 (b"), 0);
  const ProcessInfo info = ReadProcess(::getpid()).value();
  ASSERT_EQ(::prctl(PR_SET_NAME, before), 0);
  EXPECT_EQ(info.name, "a) R 1 (b");
  EXPECT_EQ(info.parent_pid, ::getppid());
}

TEST(ReadProcess, ReadsTheNiceValueAndThePolicyThatYieldsToAll) {
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  EXPECT_EQ(ReadProcessStat(child).value().nice, ::getpriority(PRIO_PROCESS, 0));
  ASSERT_EQ(::setpriority(PRIO_PROCESS, static_cast<id_t>(child), 15), 0);
  EXPECT_EQ(ReadProcessStat(child).value().nice, 15);
  const sched_param none{};
  ASSERT_EQ(::sched_setscheduler(child, SCHED_IDLE, &none), 0);
  EXPECT_EQ(ReadProcessStat(child).value().nice, kNiceOfIdle);
  EXPECT_GT(ReadProcessStat(child).value().start_ticks, 0);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

// As `python3 -c` with a program of several lines has.
TEST(ReadProcess, ReadsArgumentsOfSeveralLinesAsOne) {
  int ready[2];
  ASSERT_EQ(::pipe2(ready, O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::execl("/bin/sleep", "sleep\nfor\ta while", "60", nullptr);
    ::_exit(1);
  }
  ::close(ready[1]);
  char none;
  EXPECT_EQ(::read(ready[0], &none, 1), 0) << "closed when the program runs";
  EXPECT_EQ(ReadProcess(child).value().command, "sleep for a while 60");
  ::close(ready[0]);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

TEST(ReadProcess, AMissingProcessIsNotFound) {
  EXPECT_EQ(ReadProcess(INT32_MAX).error().code, ErrorCode::kNotFound);
}

TEST(ParseExecutableMappings, ReturnsExecutableMappingsWithTheirPaths) {
  const auto mappings = ParseExecutableMappings(
      "55d0a0000000-55d0a0001000 r--p 00000000 fe:00 12 /bin/x\n"
      "55d0a0001000-55d0a0002000 r-xp 00001000 fe:00 12                         /bin/with space (deleted)\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7fff00000000-7fff00002000 r-xp 00000000 00:00 0                          [vdso]\n"
      "garbage\nxx-yy r-xp zz\n");
  ASSERT_EQ(mappings.size(), 3u);
  EXPECT_EQ(mappings[0].path, "/bin/with space (deleted)");
  EXPECT_EQ(mappings[0].file_offset, 0x1000u);
  EXPECT_EQ(mappings[1].path, "");
  EXPECT_EQ(mappings[2].path, "[vdso]");
  EXPECT_EQ(mappings[2].end - mappings[2].start, 0x2000u);
}

// As of a program that was started in a root of its own (chroot), or changes its root once it has begun.
TEST(ParseExecutableMappings, PathsBelowAnotherRootAreAsTheProcessSeesThem) {
  const auto mappings = ParseExecutableMappings(
      "55d0a0000000-55d0a0001000 r-xp 00000000 fe:00 12 /srv/jail/bin/x (deleted)\n"
      "55d0a0001000-55d0a0002000 r-xp 00000000 fe:00 13 /srv/jailed\n"
      "7f0000000000-7f0000001000 rwxp 00000000 00:00 0 \n"
      "7fff00000000-7fff00002000 r-xp 00000000 00:00 0 [vdso]\n",
      "/srv/jail");
  ASSERT_EQ(mappings.size(), 4u);
  EXPECT_EQ(mappings[0].path, "/bin/x (deleted)");
  EXPECT_FALSE(mappings[0].outside_root);
  EXPECT_EQ(mappings[1].path, "/srv/jailed");
  EXPECT_TRUE(mappings[1].outside_root);
  EXPECT_EQ(mappings[2].path, "");
  EXPECT_FALSE(mappings[2].outside_root);
  EXPECT_EQ(mappings[3].path, "[vdso]");
  EXPECT_FALSE(mappings[3].outside_root);
}

TEST(ListDescendants, FindsChildrenOfChildren) {
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const pid_t grandchild = ::fork();
    char byte = 'x';
    if (grandchild == 0) {
      (void)!::write(ready[1], &byte, 1);
    }
    ::close(done[1]);
    (void)!::read(done[0], &byte, 1);
    if (grandchild != 0) ::waitpid(grandchild, nullptr, 0);
    ::_exit(0);
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  const std::vector<int32_t> descendants = ListDescendants(::getpid());
  EXPECT_GE(descendants.size(), 2u);
  EXPECT_THAT(descendants, testing::Contains(child));
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) ::close(fd);
  ::waitpid(child, nullptr, 0);
}

TEST(HasThreadEnded, IsTrueForAZombieWhichIsStillListed) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  EXPECT_FALSE(HasThreadEnded(child, child));
  ::kill(child, SIGKILL);
  siginfo_t ended;
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
  EXPECT_EQ(ReadThreads(child).size(), 1U);
  EXPECT_TRUE(HasThreadEnded(child, child));
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(HasThreadEnded(child, child)) << "gone";
}

TEST(MakeProcessId, DependsOnBootPidAndStart) {
  const Id128 id = MakeProcessId("boot", 1, 2);
  EXPECT_EQ(id, MakeProcessId("boot", 1, 2));
  EXPECT_NE(id, MakeProcessId("other", 1, 2));
  EXPECT_NE(id, MakeProcessId("boot", 2, 2));
  EXPECT_NE(id, MakeProcessId("boot", 1, 3));
}

TEST(StillRuns, IsFalseForAPidThatAnotherProcessHas) {
  const std::string boot_id = ReadHost().boot_id;
  const int64_t start_ticks = ReadProcessStat(::getpid()).value().start_ticks;
  EXPECT_TRUE(StillRuns(MakeProcessId(boot_id, ::getpid(), start_ticks), ::getpid()));
  EXPECT_FALSE(StillRuns(MakeProcessId(boot_id, ::getpid(), start_ticks - 1), ::getpid()))
      << "the pid was reused";
  EXPECT_FALSE(StillRuns(MakeProcessId("an earlier boot", ::getpid(), start_ticks), ::getpid()));
}

TEST(StillRuns, IsFalseOnceTheProcessHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  ASSERT_GT(child, 0);
  const Id128 id = MakeProcessId(ReadHost().boot_id, child, ReadProcessStat(child).value().start_ticks);
  EXPECT_TRUE(StillRuns(id, child));
  EXPECT_TRUE(HasProcess(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(StillRuns(id, child));
  EXPECT_FALSE(HasProcess(child));
}

}  // namespace
}  // namespace gpusonde::proc
