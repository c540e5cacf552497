// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace gpusonde {

// Demangles a C++ or Rust name; returns any other name unchanged, and those whose text would be very long.
std::string Demangle(const std::string& name);

}  // namespace gpusonde
