// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/batch.h"
#include "model/table.h"
#include "store/duckdb/connection.h"
#include "store/duckdb/handle.h"

namespace gpusonde::store::duckdb {

// Adds batches to the end of one table, in the connection's transaction, by copying their columns into
// DuckDB's vectors. Must not outlive the connection. Not thread-safe.
class TableAppender {
 public:
  // Appends to catalog.main.name, which has the declared columns, in any order.
  static Result<TableAppender> Create(Connection& connection, const model::TableInfo& table,
                                      std::string_view catalog, const std::string& name);

  // Columns are matched by name; ones that the table lacks are ignored, ones that the batch lacks become null
  // or empty. The rows are in the table after Finish. Errors: kCorrupt for a batch that isn't consistent or
  // has a column of another type; those of DuckDB.
  Status Append(const model::Batch& batch);

  Status Finish();

 private:
  TableAppender(const Library& library, const model::TableInfo& table);
  Status AppendRows(std::span<const model::ColumnData* const> columns, size_t from, size_t count);

  const Library* library_;
  model::TableInfo table_;
  Handle<duckdb_appender> appender_;
  Handle<duckdb_data_chunk> chunk_;
};

// Adds the batches to the tables of the catalog, in the connection's transaction: rows of keyed tables
// replace those with the same key, a later row wins. Batches of tables that this version doesn't know are
// ignored.
Status AppendBatches(Connection& connection, std::string_view catalog, std::span<const model::Batch> batches);

// Adds the batches of one table, whose keys, if it has any, are known to be new.
Status AppendNew(Connection& connection, std::string_view catalog, const model::TableInfo& table,
                 std::span<const model::Batch> batches);

// How rows of keyed tables replace others: append them to an empty temporary table StagingName(), then move
// the last row of every key into the table, in place of the row that has the key there. `rows` is how many
// were appended: many are moved in pieces, which bounds the memory that their keys take.
Status CreateStaging(Connection& connection, const model::TableInfo& table, std::string_view catalog);
std::string StagingName(const model::TableInfo& table);
Status MoveStaged(Connection& connection, const model::TableInfo& table, std::string_view catalog,
                  size_t rows);

}  // namespace gpusonde::store::duckdb
