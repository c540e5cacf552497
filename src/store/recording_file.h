// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/result.h"

namespace gpusonde::store {

// Looks at a file before DuckDB does, whose words for what isn't a database help nobody. Errors, each naming
// the file: kNotFound, kPermissionDenied; kCorrupt for a folder, an empty or foreign file (says what it seems
// to be) and a truncated one.
Status CheckRecordingFile(const std::string& path);

}  // namespace gpusonde::store
