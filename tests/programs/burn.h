// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

// Uses `cpu_ns` of this thread's CPU time.
[[gnu::noinline]] inline void Burn(int64_t cpu_ns) {
  const auto used_ns = [] {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  };
  const int64_t end_ns = used_ns() + cpu_ns;
  while (used_ns() < end_ns)
    for (int i = 0; i < 10'000; ++i) asm volatile("");  // keeps the loop
}
