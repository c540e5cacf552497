// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "importers/sqlite/table.h"
#include "importers/trace.h"

// SQLite exports of Nsight Systems (`nsys export --type sqlite`).
namespace gpusonde::importers::nsys {

// Whether the database is one, from the names of its tables.
bool IsNsys(std::span<const std::string> table_names);
// Whether it would be one, but for the table of strings, which an export of some tables only may lack.
bool LacksStrings(std::span<const std::string> table_names);

Result<std::unique_ptr<Trace>> OpenNsys(std::unique_ptr<sqlite::Database> database, const std::string& path,
                                        const OpenOptions& options);

}  // namespace gpusonde::importers::nsys
