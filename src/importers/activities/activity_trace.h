// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "importers/activities/tables.h"
#include "importers/sqlite/table.h"
#include "importers/trace.h"

namespace gpusonde::importers::activities {

// Opens the tables of the layout that exist, each in parts. `layout` must outlive the trace. `info` has what
// the caller knows; the rest is added.
Result<std::unique_ptr<Trace>> OpenActivities(std::unique_ptr<sqlite::Database> database,
                                              const std::string& path, const Layout& layout, TraceInfo info,
                                              const OpenOptions& options);

}  // namespace gpusonde::importers::activities
