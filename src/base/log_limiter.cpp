// SPDX-License-Identifier: Apache-2.0
#include "base/log_limiter.h"

#include <utility>

namespace gpusonde {

LogLimiter::Verdict LogLimiter::Admit(const void* place, int64_t now_ns) {
  Place& at = places_.try_emplace(place, Place{.period_start_ns = now_ns}).first->second;
  if (now_ns - at.period_start_ns >= kPeriodNs) {
    at.period_start_ns = now_ns;
    at.admitted = 0;
  }
  if (at.admitted == kBurst) {
    ++at.withheld;
    ++withheld_;
    return {};
  }
  ++at.admitted;
  withheld_ -= at.withheld;
  return {.admitted = true, .withheld = std::exchange(at.withheld, 0)};
}

}  // namespace gpusonde
