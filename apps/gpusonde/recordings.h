// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "convert/import.h"
#include "store/store.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// Opens recordings, with the sums in files of `gpusonde up`, and traces of other profilers, as one store.
// Traces become a recording in FolderForLargeFiles(); RunReader removes it. Errors: those of
// store::OpenRecordings and convert::ImportTraces.
Result<std::unique_ptr<store::Store>> OpenRecordings(const std::vector<std::string>& files,
                                                     const convert::ImportOptions& traces);

// "run.sonde", "run.sonde and 2 more".
std::string TitleOf(const std::vector<std::string>& files);

// Notices for the user of `view` and others: what was imported, and which recordings were cut short.
Result<std::vector<std::string>> NoticesOf(store::Store& store);

// Adds --temp-limit and --partial to a command that opens recordings.
void AddTraceOptions(CLI::App& command, convert::ImportOptions& traces);

// Whether the file has the magic bytes of a recording, that is, of a DuckDB database.
bool IsRecording(const std::string& file);

}  // namespace gpusonde::app
