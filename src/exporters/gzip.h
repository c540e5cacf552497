// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::exporters {

// `data` (at most 4 GiB) as a gzip file without name and time, so that the same data gives the same file.
// Errors: kOutOfSpace when memory doesn't suffice.
Result<std::string> Gzip(std::string_view data);

}  // namespace gpusonde::exporters
