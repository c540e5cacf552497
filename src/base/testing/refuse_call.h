// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace gpusonde {

// A system call that fails.
struct RefusedCall {
  uint32_t number = 0;
  uint32_t error = 0;
  // Only where this of its six arguments has this value in its lower half; without a mask, always.
  uint32_t argument = 0;
  uint32_t value = 0;
  uint32_t mask = 0;
};

// Has the call fail from now on, in this thread and those that it starts: for children, as it can't be
// undone. False if the kernel has no seccomp filters.
inline bool RefuseCall(const RefusedCall& call) {
  const auto load = [](size_t offset) {
    return sock_filter{BPF_LD | BPF_W | BPF_ABS, 0, 0, static_cast<uint32_t>(offset)};
  };
  const auto skip_unless = [](uint32_t value, uint8_t count) {
    return sock_filter{BPF_JMP | BPF_JEQ | BPF_K, 0, count, value};
  };
  std::array filter = {
      load(offsetof(seccomp_data, nr)),
      skip_unless(call.number, 4),
      load(offsetof(seccomp_data, args) + call.argument * sizeof(uint64_t)),
      sock_filter{BPF_ALU | BPF_AND | BPF_K, 0, 0, call.mask},
      skip_unless(call.value & call.mask, 1),
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | call.error},
      sock_filter{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
  };
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()), .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace gpusonde
