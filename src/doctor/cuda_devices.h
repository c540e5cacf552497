// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde::doctor {

// Starts CUDA's driver in a child process and describes it: "CUDA 13.0 on NVIDIA H100, NVIDIA H100". Errors:
// kUnavailable with the driver's reason why it doesn't start.
Result<std::string> StartCuda();

}  // namespace gpusonde::doctor
