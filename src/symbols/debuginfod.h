// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::symbols {

// The debug file with this build id (hex) from the servers that DEBUGINFOD_URLS names, or from the cache of
// earlier answers; takes as long as they do. Nobody is asked unless that variable is set. Errors: kNotFound
// when nobody has it or nobody may be asked; kUnsupported without libdebuginfod. Source:
// debuginfod_find_debuginfo(3).
Result<Fd> FetchDebugFile(const std::string& build_id);

}  // namespace gpusonde::symbols
