// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::symbols {

// Fetches the debug file with this build id (hex) from the servers that DEBUGINFOD_URLS names, or from the
// cache of earlier answers; takes as long as they do. Errors: kNotFound if no server has it or the variable
// isn't set; kUnsupported without libdebuginfod. Source: debuginfod_find_debuginfo(3).
Result<Fd> FetchDebugFile(const std::string& build_id);

}  // namespace gpusonde::symbols
