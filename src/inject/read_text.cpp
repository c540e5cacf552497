// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "inject/libc.h"

namespace gpusonde::inject {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kPart = 256;  // most names end within

// Whether the page can be read now: the kernel compares a word of it with a value, and would wait for no time
// if they were the same.
bool IsReadable(const char* at) {
  const auto* const word = at - reinterpret_cast<uintptr_t>(at) % sizeof(uint32_t);
  const timespec no_time{};
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &no_time, nullptr, 0) == 0 || errno != EFAULT;
}

// Copies bytes within a page. False if they can't be read.
bool ReadPart(const char* from, char* to, size_t bytes) {
  const iovec here{to, bytes};
  const iovec there{const_cast<char*>(from), bytes};
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes)) return true;
  // Old container runtimes forbid it by seccomp. Reading directly faults if the page is unmapped just now.
  if ((errno != EPERM && errno != ENOSYS) || !IsReadable(from)) return false;
  memcpy(to, from, bytes);
  return true;
}

}  // namespace

bool ReadText(const char* text, char* copy, size_t room, size_t& length, bool& cut) {
  const KeptErrno kept;
  length = 0;
  cut = false;
  while (length < room) {
    // Never past the end of a page: the next one may not be mapped.
    const char* from = text + length;
    size_t part = kPage - reinterpret_cast<uintptr_t>(from) % kPage;
    if (part > room - length) part = room - length;
    if (part > kPart) part = kPart;
    if (!ReadPart(from, copy + length, part)) return false;
    if (const void* end = memchr(copy + length, 0, part)) {
      length = static_cast<size_t>(static_cast<const char*>(end) - copy);
      return true;
    }
    length += part;
  }
  cut = true;
  return true;
}

}  // namespace gpusonde::inject
