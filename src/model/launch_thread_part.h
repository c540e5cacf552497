// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace gpusonde::model {

// What launch threads did in a part of the time in which GPUs were idle.
struct LaunchThreadPart {
  std::string range;  // the innermost range or operator, without a number at its end; "": none
  std::string call;   // the call in it; "": none
  int64_t time_ns = 0;
};

}  // namespace gpusonde::model
