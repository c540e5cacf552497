// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde {

// Demangles a C++ name; returns any other name unchanged.
std::string Demangle(const std::string& name);

}  // namespace gpusonde
