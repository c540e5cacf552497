// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/appender.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "model/schema.h"
#include "store/duckdb/column_writer.h"

namespace gpusonde::store::duckdb {
namespace {

Handle<duckdb_data_chunk> MakeChunk(const Library& library, const model::TableInfo& table) {
  std::vector<Handle<duckdb_logical_type>> owned;
  std::vector<duckdb_logical_type> types;
  for (const model::ColumnInfo& column : table.columns) {
    owned.emplace_back(library.destroy_logical_type, MakeLogicalType(library, column.type));
    types.push_back(owned.back().get());
  }
  return {library.destroy_data_chunk, library.create_data_chunk(types.data(), types.size())};
}

// The batch's columns in the order of the table's, null for those that it lacks.
Result<std::vector<const model::ColumnData*>> MatchColumns(const model::TableInfo& table,
                                                           const model::Batch& batch) {
  std::vector<const model::ColumnData*> matched;
  for (const model::ColumnInfo& column : table.columns) {
    const auto found = std::ranges::find(batch.columns, column.name, &model::ColumnData::name);
    if (found == batch.columns.end()) {
      matched.push_back(nullptr);
      continue;
    }
    if (found->type != column.type)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("batch of {}: column {} is of another type", batch.table, column.name));
    matched.push_back(&*found);
  }
  return matched;
}

std::string ColumnNames(std::span<const model::ColumnInfo> columns) {
  std::vector<std::string> names;
  for (const model::ColumnInfo& column : columns) names.push_back(QuoteName(column.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string KeyColumns(const model::TableInfo& table) {
  return ColumnNames(table.columns.first(static_cast<size_t>(table.key_columns)));
}

std::string FullName(const model::TableInfo& table, std::string_view catalog) {
  return fmt::format("{}.main.{}", QuoteName(catalog), QuoteName(table.name));
}

// Appends those of the batches that are the table's to catalog.main.name.
Status AppendTo(Connection& connection, std::string_view catalog, const std::string& name,
                const model::TableInfo& table, std::span<const model::Batch> batches) {
  ASSIGN_OR_RETURN(TableAppender appender, TableAppender::Create(connection, table, catalog, name));
  for (const model::Batch& batch : batches)
    if (batch.table == table.name) TRY(appender.Append(batch));
  return appender.Finish();
}

// The keys of rows of a table that is keyed by an id; nothing if a key comes twice, or in another table.
std::optional<std::vector<Id128>> DistinctIds(const model::TableInfo& table,
                                              std::span<const model::Batch> batches) {
  const model::ColumnInfo& key = table.columns.front();
  if (table.key_columns != 1 || key.type != model::ColumnType::kId128) return std::nullopt;
  std::vector<Id128> ids;
  for (const model::Batch& batch : batches) {
    if (batch.table != table.name) continue;
    const auto column = std::ranges::find(batch.columns, key.name, &model::ColumnData::name);
    if (column == batch.columns.end() || column->type != key.type || !column->valid.empty() ||
        column->values.size() != batch.rows * sizeof(Id128))
      return std::nullopt;
    if (batch.rows == 0) continue;
    ids.resize(ids.size() + batch.rows);
    std::memcpy(ids.data() + ids.size() - batch.rows, column->values.data(), column->values.size());
  }
  std::ranges::sort(ids);
  return std::ranges::adjacent_find(ids) == ids.end() ? std::optional(std::move(ids)) : std::nullopt;
}

Status ReplaceKeyed(Connection& connection, const model::TableInfo& table, std::string_view catalog,
                    std::span<const model::Batch> batches) {
  // Most names come once, and are new: one statement does, instead of five.
  constexpr size_t kMaxListed = 100'000;
  if (const auto ids = DistinctIds(table, batches); ids.has_value() && ids->size() <= kMaxListed) {
    const Parameter keys = *ids;
    TRY(connection.Run(fmt::format("DELETE FROM {} WHERE {} IN (SELECT unnest(?::UUID[]))",
                                   FullName(table, catalog), KeyColumns(table)),
                       {&keys, 1}));
    return AppendTo(connection, catalog, std::string(table.name), table, batches);
  }
  TRY(CreateStaging(connection, table, catalog));
  TRY(AppendTo(connection, "temp", StagingName(table), table, batches));
  size_t rows = 0;
  for (const model::Batch& batch : batches)
    if (batch.table == table.name) rows += batch.rows;
  return MoveStaged(connection, table, catalog, rows);
}

}  // namespace

TableAppender::TableAppender(const Library& library, const model::TableInfo& table)
    : library_(&library),
      table_(table),
      appender_([](duckdb_appender*) {}),
      chunk_(MakeChunk(library, table)) {}

Result<TableAppender> TableAppender::Create(Connection& connection, const model::TableInfo& table,
                                            std::string_view catalog, const std::string& name) {
  const Library& library = connection.library();
  TableAppender appender(library, table);
  // appender_destroy also says whether the last rows got in; Finish has asked that by then.
  static const auto destroy = library.appender_destroy;
  appender.appender_ = Handle<duckdb_appender>([](duckdb_appender* value) { destroy(value); });
  duckdb_appender* out = appender.appender_.out();
  bool ready = library.appender_create_ext(connection.get(), std::string(catalog).c_str(), "main",
                                           name.c_str(), out) == DuckDBSuccess;
  for (const model::ColumnInfo& column : table.columns)
    ready = ready && library.appender_add_column(*out, std::string(column.name).c_str()) == DuckDBSuccess;
  if (!ready) {
    const char* message = library.appender_error(*out);
    return Fail(
        ErrorOf(message == nullptr ? "unknown error" : message).With(fmt::format("append to {}", name)));
  }
  return appender;
}

Status TableAppender::Append(const model::Batch& batch) {
  TRY(model::Validate(batch));
  ASSIGN_OR_RETURN(const std::vector<const model::ColumnData*> columns, MatchColumns(table_, batch));
  const size_t chunk_rows = library_->vector_size();
  for (size_t from = 0; from < batch.rows; from += chunk_rows)
    TRY(AppendRows(columns, from, std::min(chunk_rows, batch.rows - from)));
  return {};
}

Status TableAppender::AppendRows(std::span<const model::ColumnData* const> columns, size_t from,
                                 size_t count) {
  library_->data_chunk_reset(chunk_.get());
  for (size_t i = 0; i < columns.size(); ++i)
    WriteColumn(*library_, table_.columns[i], columns[i], from, count,
                library_->data_chunk_get_vector(chunk_.get(), i));
  library_->data_chunk_set_size(chunk_.get(), count);
  if (library_->append_data_chunk(appender_.get(), chunk_.get()) != DuckDBSuccess)
    return Fail(
        ErrorOf(library_->appender_error(appender_.get())).With(fmt::format("append to {}", table_.name)));
  return {};
}

Status TableAppender::Finish() {
  if (library_->appender_close(appender_.get()) != DuckDBSuccess)
    return Fail(
        ErrorOf(library_->appender_error(appender_.get())).With(fmt::format("append to {}", table_.name)));
  return {};
}

std::string StagingName(const model::TableInfo& table) { return fmt::format("staging_{}", table.name); }

Status CreateStaging(Connection& connection, const model::TableInfo& table, std::string_view catalog) {
  return connection.Run(fmt::format("CREATE TEMP TABLE {} AS SELECT {} FROM {} LIMIT 0", StagingName(table),
                                    ColumnNames(table.columns), FullName(table, catalog)));
}

Status MoveStaged(Connection& connection, const model::TableInfo& table, std::string_view catalog,
                  size_t rows) {
  const std::string staging = "temp.main." + StagingName(table);
  const std::string target = FullName(table, catalog);
  const std::string key = KeyColumns(table);
  const std::string columns = ColumnNames(table.columns);
  // The keys of a piece are held in memory twice: grouped, and to join with.
  constexpr size_t kRowsAPiece = 100'000;
  const size_t pieces = 1 + rows / kRowsAPiece;
  for (size_t piece = 0; piece < pieces; ++piece) {
    const std::string of_piece = pieces == 1 ? "true" : fmt::format("hash({}) % {} = {}", key, pieces, piece);
    TRY(connection.Run(fmt::format("DELETE FROM {} WHERE ({}) IN (SELECT ({}) FROM {} WHERE {})", target, key,
                                   key, staging, of_piece)));
    // Row ids rise as rows are appended.
    TRY(
        connection.Run(fmt::format("INSERT INTO {} ({}) SELECT {} FROM {} WHERE rowid IN (SELECT max(rowid) "
                                   "FROM {} WHERE {} GROUP BY {})",
                                   target, columns, columns, staging, staging, of_piece, key)));
  }
  return connection.Run("DROP TABLE " + staging);
}

Status AppendNew(Connection& connection, std::string_view catalog, const model::TableInfo& table,
                 std::span<const model::Batch> batches) {
  return AppendTo(connection, catalog, std::string(table.name), table, batches);
}

Status AppendBatches(Connection& connection, std::string_view catalog,
                     std::span<const model::Batch> batches) {
  for (const model::TableInfo& table : model::AllTables()) {
    if (std::ranges::find(batches, table.name, &model::Batch::table) == batches.end()) continue;
    if (table.key_columns == 0) {
      TRY(AppendNew(connection, catalog, table, batches));
    } else {
      TRY(ReplaceKeyed(connection, table, catalog, batches));
    }
  }
  return {};
}

}  // namespace gpusonde::store::duckdb
