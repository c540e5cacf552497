// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "convert/import.h"
#include "selection_flags.h"

namespace gpusonde::app {

// Writes the tables of recordings and traces as Parquet files of the folder `output`, which must not exist,
// all of them or none. Prints what was written, or the error, and returns the exit status of `export`.
int ExportTables(const std::vector<std::string>& files, const convert::ImportOptions& reading,
                 const SelectionFlags& selection, std::string output);

}  // namespace gpusonde::app
