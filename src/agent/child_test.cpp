// SPDX-License-Identifier: Apache-2.0
#include "agent/child.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/temp_folder.h"

namespace gpusonde::agent {
namespace {

int WaitFor(Child& child) {
  while (true) {
    if (const auto status = child.TryWait(); status.has_value()) return *status;
    ::usleep(1000);
  }
}

TEST(Child, DoesNothingBeforeItIsStarted) {
  const std::string path = testing::TempDir() + "gpusonde_child_" + std::to_string(::getpid());
  Child child = Child::Prepare({"touch", path}).value();
  ::usleep(50'000);
  EXPECT_NE(::access(path.c_str(), F_OK), 0);
  ASSERT_TRUE(child.Start().has_value());
  EXPECT_EQ(WaitFor(child), 0);
  EXPECT_EQ(::access(path.c_str(), F_OK), 0);
  ::unlink(path.c_str());
}

TEST(Child, ExitStatusAndSignalAreReportedAsInAShell) {
  Child exits = Child::Prepare({"sh", "-c", "exit 41"}).value();
  ASSERT_TRUE(exits.Start().has_value());
  EXPECT_EQ(WaitFor(exits), 41);
  Child killed = Child::Prepare({"sh", "-c", "kill -9 $$"}).value();
  ASSERT_TRUE(killed.Start().has_value());
  EXPECT_EQ(WaitFor(killed), 128 + SIGKILL);
  EXPECT_EQ(killed.TryWait(), 128 + SIGKILL) << "reported again without another wait";
}

TEST(Child, IgnoresAndBlocksTheSignalsThatItsParentDoes) {
  sigset_t blocked, before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGUSR1);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const auto handler = ::signal(SIGPIPE, SIG_IGN);
  const auto of_hangup = ::signal(SIGHUP, [](int) {});
  const std::string bits = "^SigBlk:.*[2367abef]..$|^SigIgn:.*[13579bdf]..[02468ace]$";  // 9; 12, not 0
  Child child = Child::Prepare({"sh", "-c", "test $(grep -cE '" + bits + "' /proc/self/status) = 2"}).value();
  ::signal(SIGHUP, of_hangup);
  ::signal(SIGPIPE, handler);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ASSERT_TRUE(child.Start().has_value());
  EXPECT_EQ(WaitFor(child), 0);
}

// As in a script's background, where shells let programs ignore SIGINT.
TEST(Child, IgnoresASignalThatItsParentCatchesInsteadOfIgnoringIt) {
  const auto handler = ::signal(SIGINT, [](int) {});
  Child child = Child::Prepare({"sh", "-c", "kill -INT $$; exit 41"}, {}, {SIGINT}).value();
  ::signal(SIGINT, handler);
  ASSERT_TRUE(child.Start().has_value());
  EXPECT_EQ(WaitFor(child), 41);
}

TEST(Child, AMissingProgramIsNotFound) {
  Child absent = Child::Prepare({"/no/such/program"}).value();
  EXPECT_EQ(absent.Start().error().code, ErrorCode::kNotFound);
  EXPECT_EQ(WaitFor(absent), Child::kNotFound);
  Child folder = Child::Prepare({"/tmp"}).value();
  EXPECT_EQ(folder.Start().error().code, ErrorCode::kPermissionDenied);
  EXPECT_EQ(WaitFor(folder), Child::kNotExecutable);
}

TEST(Child, AProgramThatIsThereAndYetNotFoundIsExplained) {
  const TempFolder folder;
  const std::string script = folder / "gpusonde-test-script";
  std::ofstream(script) << "#!/no/such/interpreter\n";
  ::chmod(script.c_str(), 0755);
  Child without_interpreter = Child::Prepare({script}).value();
  EXPECT_THAT(without_interpreter.Start().error().message, testing::HasSubstr("the interpreter (#!)"));
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  Child not_in_path = Child::Prepare({"gpusonde-test-script"}).value();
  EXPECT_THAT(not_in_path.Start().error().message, testing::HasSubstr("run ./gpusonde-test-script"));
  std::filesystem::current_path(before);
  WaitFor(without_interpreter);
  WaitFor(not_in_path);
}

TEST(Child, EndsWhenItsParentDropsIt) {
  pid_t pid = 0;
  {
    Child abandoned = Child::Prepare({"sleep", "100"}).value();
    pid = abandoned.pid();
  }
  for (int i = 0; i < 1000 && ::kill(pid, 0) == 0; ++i) {
    ::usleep(1000);
    (void)::waitpid(pid, nullptr, WNOHANG);
  }
  EXPECT_NE(::kill(pid, 0), 0);
}

}  // namespace
}  // namespace gpusonde::agent
