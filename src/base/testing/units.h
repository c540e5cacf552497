// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/time.h"

// Short names for tests, whose times are mostly whole milliseconds and seconds; in nanoseconds.
namespace gpusonde {

inline constexpr int64_t kMs = kNanosPerMilli;
inline constexpr int64_t kSecond = kNanosPerSecond;

}  // namespace gpusonde
