// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::inject {

// Decides how long to stay awake and how long to sleep, so that what listening costs stays within a share of
// time. It knows what it can measure inside the process: the time of our callbacks on the host's threads, the
// CPU time of our own thread, and the overhead that CUPTI reports about itself. What CUPTI adds to a launch
// without saying so is not among these (docs/gpu-results.md: unconfirmed).
class Governor {
 public:
  // DESIGN section 7: step time rises by at most 0.5 %.
  static constexpr uint64_t kBudgetPerMille = 5;
  // An awake window: long against the 250 ms in which records come, short against what a person waits for.
  static constexpr uint64_t kWindowNs = uint64_t{2'000'000'000};
  // However dear, something is seen every minute.
  static constexpr uint64_t kLongestSleepNs = uint64_t{60'000'000'000};

  // How long to sleep after an awake window of `awake_ns` that cost `cost_ns`: 0 when it was within the
  // budget, else so long that window and sleep together are.
  static uint64_t SleepAfter(uint64_t awake_ns, uint64_t cost_ns) {
    const uint64_t whole_ns = cost_ns * (1000 / kBudgetPerMille);
    if (whole_ns <= awake_ns) return 0;
    const uint64_t sleep_ns = whole_ns - awake_ns;
    return sleep_ns < kLongestSleepNs ? sleep_ns : kLongestSleepNs;
  }
};

}  // namespace gpusonde::inject
