// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/time.h"

namespace gpusonde {

// Keeps one place in the program from flooding the log: any process of the machine may provoke some of the
// messages, as often as it likes. Not thread-safe.
class LogLimiter {
 public:
  // Messages of one place per period. Ten show what is wrong; a period is as long as one is ready to wait for
  // news.
  static constexpr int kBurst = 10;
  static constexpr int64_t kPeriodNs = 10 * kNanosPerSecond;

  struct Verdict {
    bool admitted = false;
    int64_t withheld = 0;  // messages of this place that were withheld before this one
  };

  Verdict Admit(const void* place, int64_t now_ns);

  // Of all places, and not yet reported with a message that was admitted.
  int64_t withheld() const { return withheld_; }

 private:
  struct Place {
    int64_t period_start_ns = 0;
    int admitted = 0;
    int64_t withheld = 0;
  };
  std::unordered_map<const void*, Place> places_;  // as many as the source has log calls
  int64_t withheld_ = 0;
};

}  // namespace gpusonde
