// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace gpusonde {

// The program's version in `gpusonde --version`, recordings and the API. Set in CMakeLists.txt.
inline constexpr std::string_view kVersion = GPUSONDE_VERSION;

}  // namespace gpusonde
