// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "base/fd.h"

namespace gpusonde::agent {

// What a program inherits to report its GPU work over a socket. Both are empty where GPU work can't be
// profiled.
struct GpuChannel {
  Fd socket;
  std::vector<std::string> environment;  // variables to add, "NAME=value"
};

}  // namespace gpusonde::agent
