// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde::doctor {

// What CUDA's driver says when it is started, in a child process: "CUDA 13.0 on NVIDIA H100, NVIDIA H100".
// Errors: kUnavailable with the driver's word for why it doesn't start.
Result<std::string> StartCuda();

}  // namespace gpusonde::doctor
