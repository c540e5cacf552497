// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <unordered_map>

#include "base/time.h"

namespace gpusonde {

// Keeps a single log call from flooding the log: any process on the machine may cause some of the messages,
// arbitrarily often. Not thread-safe.
class LogLimiter {
 public:
  // Messages per log call and period. Ten show what is wrong; the period bounds the delay of the next report.
  static constexpr int kBurst = 10;
  static constexpr int64_t kPeriodNs = 10 * kNanosPerSecond;

  struct Verdict {
    bool admitted = false;
    int64_t withheld = 0;  // messages of this log call that were withheld before this one
  };

  Verdict Admit(const void* place, int64_t now_ns);

  // Withheld messages of all log calls that were not yet reported with an admitted message.
  int64_t withheld() const { return withheld_; }

 private:
  struct Place {
    int64_t period_start_ns = 0;
    int admitted = 0;
    int64_t withheld = 0;
  };
  std::unordered_map<const void*, Place> places_;  // bounded by the number of log calls in the source
  int64_t withheld_ = 0;
};

}  // namespace gpusonde
