// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace gpusonde::exporters {

// A gzip file of at most 4 GiB, without name and time, so that equal data gives equal files. Errors:
// kOutOfSpace if memory runs out. Thread-safe.
Result<std::string> GzipFile(std::string_view data);

}  // namespace gpusonde::exporters
