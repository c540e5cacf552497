// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde {

// A mangled C++ name as people write it; any other name as it is.
std::string Demangle(const std::string& name);

}  // namespace gpusonde
