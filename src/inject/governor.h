// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::inject {

// Decides how long to sleep after an awake window, so that the overhead of profiling stays within its budget.
// The overhead counted is what can be measured inside the process: the time of our callbacks on the host's
// threads, the CPU time of our own thread, and the overhead that CUPTI reports about itself. What CUPTI adds
// to a launch without reporting it is not included (docs/gpu-results.md: unconfirmed).
class Governor {
 public:
  // Step time may rise by at most 0.5 %: the goal for profiling that is always on.
  static constexpr uint64_t kBudgetPerMille = 5;
  // Length of an awake window: several flushes (250 ms) long, yet short enough for interactive use.
  static constexpr uint64_t kWindowNs = uint64_t{2'000'000'000};
  // Even at the highest overhead there is a window every minute.
  static constexpr uint64_t kMaxSleepNs = uint64_t{60'000'000'000};

  // How long to sleep after an awake window of `awake_ns` that cost `cost_ns`: 0 if the window was within the
  // budget, else the time that brings window and sleep together back to the budget.
  static uint64_t SleepAfter(uint64_t awake_ns, uint64_t cost_ns) {
    const uint64_t whole_ns = cost_ns * (1000 / kBudgetPerMille);
    if (whole_ns <= awake_ns) return 0;
    const uint64_t sleep_ns = whole_ns - awake_ns;
    return sleep_ns < kMaxSleepNs ? sleep_ns : kMaxSleepNs;
  }
};

}  // namespace gpusonde::inject
