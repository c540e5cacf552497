// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Opens recordings, with the sums in files of `gpusonde up`, and traces of other profilers, as one store.
// Traces become a recording in FolderForLargeFiles(), which has at most `temp_limit` bytes; RunReader removes
// it. Errors: those of store::OpenRecordings and convert::ImportTraces.
Result<std::unique_ptr<store::Store>> OpenRecordings(
    const std::vector<std::string>& files, uint64_t temp_limit = std::numeric_limits<uint64_t>::max());

// Adds --temp-limit to a command that opens recordings.
void AddTempLimit(CLI::App& command, uint64_t& temp_limit);

// Whether the file has the magic bytes of a recording, that is, of a DuckDB database.
bool IsRecording(const std::string& file);

}  // namespace gpusonde::app
