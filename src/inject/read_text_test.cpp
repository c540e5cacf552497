// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

constexpr size_t kPageBytes = 4096;

// Two pages, of which the second can be unmapped.
class TwoPages {
 public:
  TwoPages()
      : begin_(static_cast<char*>(
            ::mmap(nullptr, 2 * kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~TwoPages() { ::munmap(begin_, 2 * kPageBytes); }
  TwoPages(const TwoPages&) = delete;
  TwoPages& operator=(const TwoPages&) = delete;

  // Writes a text without its terminator so that it ends with the first page.
  const char* AtEnd(const std::string& text) {
    std::memcpy(begin_ + kPageBytes - text.size(), text.data(), text.size());
    return begin_ + kPageBytes - text.size();
  }
  char* second() { return begin_ + kPageBytes; }
  void UnmapSecond() { ::munmap(second(), kPageBytes); }

 private:
  char* begin_;
};

// What ReadText reads; "?" if it can't be read.
std::string Read(const char* text, size_t room = 4000) {
  std::string copy(room, '?');
  size_t length = 0;
  bool cut = false;
  if (!ReadText(text, copy.data(), room, length, cut)) return "?";
  return copy.substr(0, length) + (cut ? "..." : "");
}

// 0, or the number of the expectation that failed.
int CheckReads() {
  TwoPages pages;
  const std::string name(300, 'n');
  if (Read(pages.AtEnd(name)) != name) return 1;  // the second page begins with the terminator
  pages.second()[0] = 'm';
  if (Read(pages.AtEnd(name)) != name + 'm') return 2;
  if (Read(pages.AtEnd(name), 299) != name.substr(0, 299) + "...") return 3;
  pages.UnmapSecond();
  if (Read(pages.AtEnd(name)) != "?") return 4;
  if (Read(pages.AtEnd(name + '\0')) != name) return 5;
  if (Read(pages.second()) != "?") return 6;
  return 0;
}

TEST(ReadText, ReadsNothingThatIsNotMapped) { EXPECT_EQ(CheckReads(), 0); }

bool RefuseToReadMemory() {
  std::array filter = {
      sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
      sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_process_vm_readv},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(ReadText, ReadsNothingThatIsNotMappedWhereTheKernelMayNotReadForUs) {
  constexpr int kNoFilter = 100;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(RefuseToReadMemory() ? CheckReads() : kNoFilter);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoFilter) GTEST_SKIP() << "this kernel has no seccomp filters";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace gpusonde::inject
