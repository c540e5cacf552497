// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"
#include "model/table.h"

namespace gpusonde::model {

// Version of the tables as a whole, stored in `meta`. A newer program opens older stores; an older one
// refuses newer ones. Raised by one with every change of a column. Tables and columns that an older store
// lacks are added when it is opened (store/duckdb/schema.h), and columns become nullable that are now; a
// change of meaning needs a migration there.
inline constexpr int32_t kSchemaVersion = 9;

// All tables, by name. A new table is a file under tables/ and a line in schema.cpp.
std::span<const TableInfo> AllTables();

// The table of that name, or null.
const TableInfo* FindTable(std::string_view name);

struct Batch;

// Checks that a valid batch (Validate in model/batch.h) can be appended to its table: the columns that the
// table declares have its types, and no nulls where it has none. Other columns, and tables that this version
// doesn't know, pass. Errors: kCorrupt with table and column.
Status CheckAgainstSchema(const Batch& batch);

}  // namespace gpusonde::model
