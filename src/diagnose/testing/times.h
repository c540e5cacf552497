// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

namespace gpusonde::diagnose {

// When the synthetic programs of the tests begin, in nanoseconds of the wall clock.
inline constexpr int64_t kBegin = 1'800'000'000 * kNanosPerSecond;

}  // namespace gpusonde::diagnose
