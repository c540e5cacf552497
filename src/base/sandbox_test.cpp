// SPDX-License-Identifier: Apache-2.0
#include "base/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/testing/temp_folder.h"

namespace gpusonde {
namespace {

// Runs `attempt` in a confined process and returns its result: 0, or errno.
int Confined(const SandboxGrants& grants, const std::function<int()>& attempt) {
  const pid_t child = ::fork();
  if (child == 0) {
    EnterSandbox(grants);
    ::_exit(attempt());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int Opens(const std::string& path, int flags) { return Open(path, flags).has_value() ? 0 : errno; }

int Connects(int type) {
  const Fd socket(::socket(AF_INET, type, 0));
  if (!socket.valid()) return errno;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);  // discard: the connection is refused if connecting is allowed
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

TEST(Sandbox, StartsNoProgramAndReachesNoProcess) {
  if (!HasSeccomp()) GTEST_SKIP() << "this kernel has no seccomp filters";
  const pid_t parent = ::getpid();
  EXPECT_EQ(Confined({}, [] { return ::execl("/bin/true", "true", nullptr), errno; }), ENOSYS);
  EXPECT_EQ(Confined({}, [] { return ::fork() < 0 ? errno : 0; }), ENOSYS);
  EXPECT_EQ(Confined({}, [&] { return ::kill(parent, 0) < 0 ? errno : 0; }), ENOSYS);
  EXPECT_EQ(Confined({}, [] { return std::thread([] {}).join(), 0; }), 0) << "threads are its own";
  EXPECT_EQ(Confined({}, [] { return std::abort(), 0; }), -SIGABRT);
}

TEST(Sandbox, ConnectsToNothing) {
  if (!HasSeccomp()) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(Confined({}, [] { return Connects(SOCK_STREAM); }), ENOSYS);
  EXPECT_EQ(Confined({.serves = true}, [] { return Connects(SOCK_STREAM); }), ENOSYS);
  EXPECT_EQ(Confined({.serves = true}, [] { return Connects(SOCK_DGRAM); }), ENOSYS);
  EXPECT_EQ(Confined({.serves = true},
                     [] {
                       const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
                       return ::listen(socket.get(), 1) == 0 ? 0 : errno;
                     }),
            0);
}

TEST(Sandbox, OpensOnlyWhatIsGranted) {
  if (LandlockVersion() == 0) GTEST_SKIP() << "this kernel has no Landlock";
  const TempFolder folder;
  const std::string file = folder / "file";
  const std::string spill = folder / "spill";
  ASSERT_EQ(::mkdir(spill.c_str(), 0700), 0);
  std::ofstream(file) << "text";
  const SandboxGrants grants{.readable = {file, folder / "absent"}, .writable = spill};
  EXPECT_EQ(Confined(grants, [&] { return Opens(file, O_RDONLY); }), 0);
  EXPECT_EQ(Confined(grants, [&] { return Opens(file, O_RDWR); }), EACCES);
  EXPECT_EQ(Confined(grants, [&] { return Opens("/etc/passwd", O_RDONLY); }), EACCES);
  EXPECT_EQ(Confined(grants, [&] { return Opens(folder / "other", O_WRONLY | O_CREAT); }), EACCES);
  EXPECT_EQ(Confined(grants, [&] { return Opens(spill + "/part", O_RDWR | O_CREAT); }), 0);
}

TEST(Sandbox, LimitsMemory) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer itself needs memory, and ends a process that gets none";
#endif
  constexpr int64_t kLimit = int64_t{256} << 20;
  EXPECT_EQ(Confined({.max_data_bytes = kLimit},
                     [] {
                       void* large = ::mmap(nullptr, size_t{2} * kLimit, PROT_READ | PROT_WRITE,
                                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                       return large == MAP_FAILED ? errno : 0;
                     }),
            ENOMEM);
}

}  // namespace
}  // namespace gpusonde
