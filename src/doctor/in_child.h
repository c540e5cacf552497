// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "base/result.h"

namespace gpusonde::doctor {

// What `work` returns, done by a child process: drivers hang, crash, print and leave threads behind, and a
// probe must do none of that to us. At most 64 kB. Errors: kUnavailable when it doesn't end within
// `patience_s` (it is killed then), or dies.
Result<std::string> InChild(const std::function<std::string()>& work, int patience_s = 20);

}  // namespace gpusonde::doctor
