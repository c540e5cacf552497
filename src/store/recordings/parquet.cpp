// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/parquet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "model/schema.h"
#include "store/duckdb/connection.h"
#include "store/recordings/attach.h"

namespace gpusonde::store {
namespace {

constexpr std::array<std::string_view, 2> kLeftOut = {"batches", "kernel_packs"};

const model::ColumnInfo* ColumnOf(const model::TableInfo& table, std::string_view name) {
  const auto found = std::ranges::find(table.columns, name, &model::ColumnInfo::name);
  return found == table.columns.end() ? nullptr : &*found;
}

// " WHERE …", or nothing if all rows are selected. COPY takes no parameters; the values are numbers and ids.
std::string WhereOf(const model::TableInfo& table, const model::Selection& selection) {
  std::string where;
  const auto add = [&where](const std::string& condition) {
    where += (where.empty() ? " WHERE " : " AND ") + condition;
  };
  const auto match = [&](std::string_view name, const std::string& values) {
    const model::ColumnInfo* column = ColumnOf(table, name);
    if (column == nullptr) return;
    add(fmt::format("({} IN ({}){})", name, values,
                    column->nullable ? fmt::format(" OR {} IS NULL", name) : ""));
  };
  std::string processes;
  for (const Id128& process : selection.processes)
    processes += fmt::format("{}'{}'::UUID", processes.empty() ? "" : ", ", process.ToHex());
  if (!processes.empty()) match("process", processes);
  if (selection.device.has_value()) match("device", fmt::format("'{}'::UUID", selection.device->ToHex()));
  if (selection.stream.has_value()) match("stream", fmt::format("{}", *selection.stream));
  if (table.key_columns > 0) return where;
  for (const std::string_view time : {"time_ns", "start_ns"}) {
    if (ColumnOf(table, time) == nullptr) continue;
    if (selection.from_ns > std::numeric_limits<int64_t>::min())
      add(fmt::format("{} >= {}", time, selection.from_ns));
    if (selection.to_ns < std::numeric_limits<int64_t>::max())
      add(fmt::format("{} < {}", time, selection.to_ns));
  }
  return where;
}

// The number of rows.
Result<int64_t> WriteTable(const std::shared_ptr<duckdb::Instance>& instance, const model::TableInfo& table,
                           const model::Selection& selection, const std::string& folder) {
  ASSIGN_OR_RETURN(duckdb::Connection connection, duckdb::Connection::Open(instance));
  const std::string sql = fmt::format("COPY (SELECT * FROM {}{}) TO {} (FORMAT parquet, COMPRESSION zstd)",
                                      table.name, WhereOf(table, selection),
                                      duckdb::QuoteText(fmt::format("{}/{}.parquet", folder, table.name)));
  ASSIGN_OR_RETURN(const auto rows, duckdb::Connection::Query(std::move(connection), sql, {},
                                                              duckdb::Connection::Allow::kEverything));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? rows->Int64(0) : 0;
}

}  // namespace

Result<ParquetSummary> WriteParquet(const std::vector<std::string>& recordings,
                                    const model::Selection& selection, const std::string& folder) {
  ASSIGN_OR_RETURN(const auto instance, OpenForReading(recordings, folder));
  ParquetSummary summary;
  for (const model::TableInfo& table : model::AllTables()) {
    if (std::ranges::find(kLeftOut, table.name) != kLeftOut.end()) continue;
    ASSIGN_OR_RETURN(const int64_t rows, WriteTable(instance, table, selection, folder));
    ++summary.tables;
    summary.rows += rows;
  }
  return summary;
}

}  // namespace gpusonde::store
