// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde {

// 128-bit integers of g++ and clang, for sums that don't fit 64 bits.
__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

}  // namespace gpusonde
