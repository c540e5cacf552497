// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/schema.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/version.h"
#include "model/schema.h"
#include "store/each_row.h"

namespace gpusonde::store::duckdb {
namespace {

std::string_view SqlType(model::ColumnType type) {
  switch (type) {
    case model::ColumnType::kBool:
      return "BOOLEAN";
    case model::ColumnType::kInt32:
      return "INTEGER";
    case model::ColumnType::kInt64:
      return "BIGINT";
    case model::ColumnType::kFloat64:
      return "DOUBLE";
    case model::ColumnType::kText:
      return "VARCHAR";
    case model::ColumnType::kId128:
      return "UUID";
    case model::ColumnType::kIdList:
      return "UUID[]";
    case model::ColumnType::kInt64List:
      return "BIGINT[]";
  }
  return "VARCHAR";
}

// What a row has in a column that its batch or its file lacks.
std::string AbsentSql(const model::ColumnInfo& column) {
  if (column.nullable) return fmt::format("NULL::{}", SqlType(column.type));
  switch (column.type) {
    case model::ColumnType::kText:
      return "''";
    case model::ColumnType::kId128:
      return "'00000000-0000-0000-0000-000000000000'::UUID";
    case model::ColumnType::kIdList:
    case model::ColumnType::kInt64List:
      return fmt::format("[]::{}", SqlType(column.type));
    default:
      return fmt::format("0::{}", SqlType(column.type));
  }
}

std::string Meaning(const model::ColumnInfo& column) {
  return column.unit.empty() ? std::string(column.meaning)
                             : fmt::format("{} [{}]", column.meaning, column.unit);
}

std::string ColumnNames(const model::TableInfo& table, size_t count) {
  std::vector<std::string> names;
  for (const model::ColumnInfo& column : table.columns.first(count)) names.push_back(QuoteName(column.name));
  return fmt::format("{}", fmt::join(names, ", "));
}

// (table, column) of everything in a catalog.
using ColumnSet = std::set<std::pair<std::string, std::string>>;

// Of every attached catalog, by its name.
Result<std::map<std::string, ColumnSet, std::less<>>> ReadColumns(Connection& connection) {
  std::map<std::string, ColumnSet, std::less<>> columns;
  TRY(ForEachRow(
      connection.Ask("SELECT database_name, table_name, column_name FROM duckdb_columns() "
                     "WHERE schema_name = 'main' AND NOT internal"),
      [&](const Rows& row) { columns[std::string(row.Text(0))].emplace(row.Text(1), row.Text(2)); }));
  return columns;
}

bool HasTable(const ColumnSet& columns, std::string_view table) {
  const auto found = columns.lower_bound({std::string(table), ""});
  return found != columns.end() && found->first == table;
}

// The table's declared columns out of one catalog, whatever of them that has.
std::string SelectFrom(const model::TableInfo& table, std::string_view catalog, const ColumnSet& present) {
  std::vector<std::string> values;
  for (const model::ColumnInfo& column : table.columns) {
    const std::string name = QuoteName(column.name);
    const bool there = present.contains({std::string(table.name), std::string(column.name)});
    values.push_back(there ? name : fmt::format("{} AS {}", AbsentSql(column), name));
  }
  if (!HasTable(present, table.name)) return fmt::format("SELECT {} WHERE false", fmt::join(values, ", "));
  return fmt::format("SELECT {} FROM {}.main.{}", fmt::join(values, ", "), QuoteName(catalog),
                     QuoteName(table.name));
}

struct ViewSql {
  std::string raw;
  std::string distinct;
};

ViewSql ViewsOf(const model::TableInfo& table, std::span<const std::string> catalogs,
                std::span<const ColumnSet> present, std::string_view into) {
  std::vector<std::string> parts;
  std::vector<std::string> numbered;
  for (size_t i = 0; i < catalogs.size(); ++i) {
    parts.push_back(SelectFrom(table, catalogs[i], present[i]));
    numbered.push_back(fmt::format("SELECT *, {} AS catalog_number FROM ({})", i, parts.back()));
  }
  if (catalogs.empty()) parts.push_back(SelectFrom(table, "", {}));
  const std::string name = QuoteName(table.name);
  const std::string raw = fmt::format("{}", fmt::join(parts, " UNION ALL "));
  if (table.key_columns == 0 || catalogs.size() < 2)
    return {raw, fmt::format("SELECT * FROM {}.raw.{}", into, name)};
  return {raw, fmt::format("SELECT DISTINCT ON ({}) {} FROM ({}) ORDER BY catalog_number DESC",
                           ColumnNames(table, static_cast<size_t>(table.key_columns)),
                           ColumnNames(table, table.columns.size()), fmt::join(numbered, " UNION ALL "))};
}

}  // namespace

std::string CreateTableSql(const model::TableInfo& table, std::string_view catalog) {
  const std::string name = fmt::format("{}.main.{}", QuoteName(catalog), QuoteName(table.name));
  std::vector<std::string> columns;
  std::string comment(table.meaning);
  for (const model::ColumnInfo& column : table.columns) {
    columns.push_back(fmt::format("  {} {}{}", QuoteName(column.name), SqlType(column.type),
                                  column.nullable ? "" : " NOT NULL"));
    comment += fmt::format("\n{}: {}", column.name, Meaning(column));
  }
  return fmt::format("CREATE TABLE {} (\n{});\nCOMMENT ON TABLE {} IS {};\n", name, fmt::join(columns, ",\n"),
                     name, QuoteText(comment));
}

Status CreateTables(Connection& connection, std::string_view catalog) {
  const Result<int32_t> version = ReadVersion(connection, catalog);
  if (version.has_value() && *version == model::kSchemaVersion) return {};
  if (!version.has_value() && version.error().code == ErrorCode::kTooNew) return Fail(version.error());
  ASSIGN_OR_RETURN(auto columns, ReadColumns(connection));
  const ColumnSet& present = columns[std::string(catalog)];
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
  for (const model::TableInfo& table : model::AllTables()) {
    if (!HasTable(present, table.name)) {
      TRY(connection.Run(CreateTableSql(table, catalog)));
      continue;
    }
    for (const model::ColumnInfo& column : table.columns) {
      const std::string alter =
          fmt::format("ALTER TABLE {}.main.{} ", QuoteName(catalog), QuoteName(table.name));
      const std::string name = QuoteName(column.name);
      if (!present.contains({std::string(table.name), std::string(column.name)}))
        TRY(connection.Run(alter + fmt::format("ADD COLUMN {} {} DEFAULT {}", name, SqlType(column.type),
                                               AbsentSql(column))));
      else if (column.nullable)
        TRY(connection.Run(alter + fmt::format("ALTER COLUMN {} DROP NOT NULL", name)));
    }
  }
  const std::string meta = QuoteName(catalog) + ".main.meta";
  TRY(connection.Run(fmt::format("DELETE FROM {} WHERE key IN ('schema_version', 'created_by')", meta)));
  TRY(connection.Run(
      fmt::format("INSERT INTO {} VALUES ('schema_version', '{}'), ('created_by', 'gpusonde {}')", meta,
                  model::kSchemaVersion, kVersion)));
  return transaction.Commit();
}

Result<int32_t> ReadVersion(Connection& connection, std::string_view catalog) {
  const auto rows = connection.Ask(
      fmt::format("SELECT value FROM {}.main.meta WHERE key = 'schema_version'", QuoteName(catalog)));
  if (!rows.has_value() && rows.error().code == ErrorCode::kInvalidArgument)
    return Fail(ErrorCode::kCorrupt, "a DuckDB database, but not a recording of gpusonde");
  if (!rows.has_value()) return Fail(rows.error());
  ASSIGN_OR_RETURN(const bool any, (*rows)->Next());
  const int32_t version = ParseNumber<int32_t>(any ? (*rows)->Text(0) : "").value_or(0);
  if (version < 1)
    return Fail(ErrorCode::kCorrupt,
                "a DuckDB database without the schema version of a recording of gpusonde");
  if (version > model::kSchemaVersion)
    return Fail(ErrorCode::kTooNew,
                fmt::format("written by a newer gpusonde (schema version {}, this one reads up to "
                            "{}); use that one",
                            version, model::kSchemaVersion));
  return version;
}

Status CreateViews(Connection& connection, std::span<const std::string> catalogs, std::string_view into) {
  ASSIGN_OR_RETURN(auto columns, ReadColumns(connection));
  std::vector<ColumnSet> present;
  for (const std::string& catalog : catalogs) present.push_back(std::move(columns[catalog]));
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(connection));
  TRY(connection.Run(fmt::format("CREATE SCHEMA IF NOT EXISTS {}.raw", into)));
  for (const model::TableInfo& table : model::AllTables()) {
    const ViewSql views = ViewsOf(table, catalogs, present, into);
    const std::string name = QuoteName(table.name);
    TRY(connection.Run(fmt::format("CREATE OR REPLACE VIEW {}.raw.{} AS {}", into, name, views.raw)));
    TRY(connection.Run(fmt::format("CREATE OR REPLACE VIEW {}.main.{} AS {}", into, name, views.distinct)));
  }
  TRY(connection.Run(fmt::format(
      "CREATE OR REPLACE VIEW {0}.main.kernels AS SELECT * FROM {0}.raw.kernels UNION ALL BY NAME "
      "SELECT process, device, session, unnest(correlations) AS correlation, context, stream, {1}, name, "
      "grid_x, grid_y, grid_z, block_x, block_y, block_z, registers, static_shared_bytes, "
      "dynamic_shared_bytes, unnest(graph_nodes) AS graph_node FROM {0}.raw.kernel_packs WHERE {2}",
      into, kPackedTimes, kSoundPack)));
  return transaction.Commit();
}

}  // namespace gpusonde::store::duckdb
