// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde {

// Reads the bearer token in a file: its one line, 16 to 4096 printable ASCII characters without spaces.
// Errors: kInvalidArgument for any other content; those of OpenRegular.
Result<std::string> ReadToken(const std::string& path);

}  // namespace gpusonde
