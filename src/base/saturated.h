// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/int128.h"

namespace gpusonde {

// a + b for non-negative numbers; the maximum on overflow.
inline int64_t AddSaturated(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? std::numeric_limits<int64_t>::max() : sum;
}

// A non-negative number; the maximum if it is larger.
inline int64_t Saturated(Int128 number) {
  return static_cast<int64_t>(std::min<Int128>(number, std::numeric_limits<int64_t>::max()));
}

}  // namespace gpusonde
