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
// as they lie, which is faster where a key that comes twice does no harm. `kernels` also has those that lie
// in packs, raw.kernels has not.
namespace gpusonde::store::duckdb {

// The kernels of a row of `kernel_packs`: where it is sound, the start and the end of each. Whatever a file
// says, times stay what can be counted with: offsets lie within a second, nothing lasts longer than 73 years.
// `count` is rarely read otherwise, and must be in each condition: where DuckDB 1.4 reads all columns that it
// filters, the lists of skipped vectors pile up in the scan's buffer.
inline constexpr std::string_view kSoundPack =
    "start_ns >= 0 AND start_ns < 4611686018427387904 AND count >= 0";
inline constexpr std::string_view kPackedTimes =
    "start_ns + (unnest(offsets_ns) & 1073741823) AS start_ns, "
    "start_ns + (unnest(offsets_ns) & 1073741823) + (unnest(durations_ns) & 2305843009213693951) AS end_ns";

// "CREATE TABLE …", and a comment on the table with a line for each column, with units, as any DuckDB client
// shows it. Comments on columns cost a statement each: 340 take 40 ms of the 0.5 s of a short recording.
std::string CreateTableSql(const model::TableInfo& table, std::string_view catalog);

// Makes the tables and columns that the catalog lacks, all of them in a new one, and the rows of `meta` that
// say what made it. Errors: kTooNew; those of DuckDB.
Status CreateTables(Connection& connection, std::string_view catalog);

// The schema version of a catalog. Errors: kCorrupt when it is none of gpusonde's, kTooNew.
Result<int32_t> ReadVersion(Connection& connection, std::string_view catalog);

// The catalog in memory that every instance has; connections read its views unless they are told otherwise.
inline constexpr std::string_view kMemory = "memory";

// Replaces the views of the catalog `into` by views over these catalogs; where catalogs hold the same key,
// the later one wins. Columns that an older catalog lacks are null or empty.
Status CreateViews(Connection& connection, std::span<const std::string> catalogs,
                   std::string_view into = kMemory);

}  // namespace gpusonde::store::duckdb
