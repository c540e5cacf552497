// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace gpusonde {

// Levels of arrays and objects that JSON from elsewhere may have. nlohmann's parser takes any number of them,
// but its values are copied and written by recursion: a megabyte of brackets would exhaust the stack.
inline constexpr size_t kMaxJsonDepth = 512;

// Whether a JSON text has more levels. What isn't JSON is left to its parser.
bool IsTooDeep(std::string_view json);

}  // namespace gpusonde
