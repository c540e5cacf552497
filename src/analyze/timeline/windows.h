// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace gpusonde::analyze {

// The time of a rank is divided into this many equal windows.
inline constexpr size_t kWindows = 128;

}  // namespace gpusonde::analyze
