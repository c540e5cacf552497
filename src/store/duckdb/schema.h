// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/table.h"
#include "store/duckdb/connection.h"

// The tables of model::AllTables() in DuckDB.
//
// A catalog is one attached file. Queries see views over the catalogs in the in-memory database: under a
// table's own name the rows of all of them, of keyed tables the last per key; under raw.NAME the rows of all
// as they lie, which is faster where a key that comes twice does no harm.
namespace gpusonde::store::duckdb {

// "CREATE TABLE …" and its comments, with units, as any DuckDB client shows them.
std::string CreateTableSql(const model::TableInfo& table, std::string_view catalog);

// Makes the tables and columns that the catalog lacks, all of them in a new one, and the rows of `meta` that
// say what made it. Errors: kTooNew; those of DuckDB.
Status CreateTables(Connection& connection, std::string_view catalog);

// The schema version of a catalog. Errors: kCorrupt when it is none of gpusonde's, kTooNew.
Result<int32_t> ReadVersion(Connection& connection, std::string_view catalog);

// Replaces the views by views over these catalogs; where catalogs hold the same key, the later one wins.
// Columns that an older catalog lacks are null or empty.
Status CreateViews(Connection& connection, std::span<const std::string> catalogs);

}  // namespace gpusonde::store::duckdb
