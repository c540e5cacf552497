// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>
#include <limits>

#include "base/time.h"

namespace gpusonde {

// A time that stat(2) gives, in ns since the Unix epoch. Whoever may write a file can set any time (touch -d
// 2300-01-01): one beyond 64 bits becomes the nearest within.
inline int64_t FileTimeNs(const timespec& time) {
  int64_t ns = 0;
  if (!__builtin_mul_overflow(int64_t{time.tv_sec}, kNanosPerSecond, &ns) &&
      !__builtin_add_overflow(ns, int64_t{time.tv_nsec}, &ns))
    return ns;
  return time.tv_sec < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
}

}  // namespace gpusonde
