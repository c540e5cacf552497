// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::exporters {

// Compresses `data` (at most 4 GiB) to a gzip file without name and time, so that equal data gives equal
// files. Errors: kOutOfSpace if memory runs out.
Result<std::string> Gzip(std::string_view data);

}  // namespace gpusonde::exporters
