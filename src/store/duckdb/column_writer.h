// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "model/batch.h"
#include "model/table.h"
#include "store/duckdb/library.h"

namespace gpusonde::store::duckdb {

// The DuckDB type of a column; the caller destroys it.
duckdb_logical_type MakeLogicalType(const Library& library, model::ColumnType type);

// Copies rows [from, from + count) of a valid batch's column into an empty vector of its type. `data` may be
// null, for a column that the batch lacks: null where the column may be, else zero or empty. Text that isn't
// UTF-8 gets U+FFFD for what isn't.
void WriteColumn(const Library& library, const model::ColumnInfo& column, const model::ColumnData* data,
                 size_t from, size_t count, duckdb_vector vector);

}  // namespace gpusonde::store::duckdb
