// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace gpusonde::app {

// store::OpenRecordings, with the sums in files of `gpusonde up`, and a better error: if a file is a trace,
// names the command that reads it.
Result<std::unique_ptr<store::Store>> OpenRecordings(const std::vector<std::string>& files);

// Whether the file has the magic bytes of a recording, that is, of a DuckDB database.
bool IsRecording(const std::string& file);

}  // namespace gpusonde::app
