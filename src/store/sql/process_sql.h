// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/selection.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

// Whether a row is of the selection's processes: "process = ?", or "process IN (?, …)" for several, which
// DuckDB pushes into scans as it does the former. Requires a selection of processes.
SqlPart IsOfProcesses(const model::Selection& selection);

// " AND " and that; nothing if all processes are selected.
SqlPart AndOfProcesses(const model::Selection& selection);

}  // namespace gpusonde::store
