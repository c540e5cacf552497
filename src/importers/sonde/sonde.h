// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "importers/trace.h"

// gpusonde's own recordings: reads GPU work, calls and ranges.
namespace gpusonde::importers::sonde {

// Whether a file that begins so is a DuckDB database, as recordings are.
bool IsDuckDb(std::string_view head);

// Errors: those of store::OpenRecordings.
Result<std::unique_ptr<Trace>> OpenSonde(const std::string& path);

}  // namespace gpusonde::importers::sonde
