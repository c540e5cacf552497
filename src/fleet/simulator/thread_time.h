// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace gpusonde::fleet {

// CPU time of this thread so far, in ns. One call takes about 0.2 µs.
inline int64_t ThreadTimeNs() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace gpusonde::fleet
