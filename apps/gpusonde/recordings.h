// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::app {

// store::OpenRecordings for a person who may have named a trace: that error names the command that reads it.
Result<std::unique_ptr<store::Store>> OpenRecordings(const std::vector<std::string>& files);

// Whether the file begins like a recording, that is, like a DuckDB database.
bool IsRecording(const std::string& file);

}  // namespace gpusonde::app
