// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace gpusonde::doctor {

// Runs `work` in a child process and returns its result, at most 64 kB: drivers hang, crash, print and leave
// threads behind, and a probe must not do that to us. Errors: kUnavailable if the child crashes or doesn't
// finish within `timeout_s` (it is killed then, and left behind if that doesn't end it within 2 s).
Result<std::string> InChild(const std::function<std::string()>& work, int timeout_s = 20);

}  // namespace gpusonde::doctor
