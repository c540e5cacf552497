// SPDX-License-Identifier: Apache-2.0
#include "analyze_duckdb.h"

#include <duckdb.h>
#include <fmt/format.h>
#include <sqlite3.h>

#include <cstdint>
#include <ctime>
#include <string_view>

namespace {

// CPU time of this process; DuckDB runs with one thread.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

constexpr const char* kColumns =
    "start BIGINT, \"end\" BIGINT, device INTEGER, stream INTEGER, correlation BIGINT, "
    "name INTEGER";

struct Database {
  duckdb_database database = nullptr;
  duckdb_connection connection = nullptr;

  bool Open() {
    return duckdb_open(nullptr, &database) == DuckDBSuccess &&
           duckdb_connect(database, &connection) == DuckDBSuccess && Run("SET threads = 1");
  }
  bool Run(const std::string& sql, duckdb_result* answer = nullptr) {
    duckdb_result own;
    duckdb_result* const result = answer != nullptr ? answer : &own;
    const bool done = duckdb_query(connection, sql.c_str(), result) == DuckDBSuccess;
    if (!done) fmt::print(stderr, "duckdb: {}\n", duckdb_result_error(result));
    if (answer == nullptr) duckdb_destroy_result(result);
    return done;
  }
  ~Database() {
    duckdb_disconnect(&connection);
    duckdb_close(&database);
  }
};

bool Load(Database& into, const std::string& path) {
  sqlite3* source = nullptr;
  sqlite3_stmt* rows = nullptr;
  if (sqlite3_open_v2(("file:" + path + "?immutable=1").c_str(), &source,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr) != SQLITE_OK ||
      sqlite3_prepare_v2(source,
                         "SELECT start, end, deviceId, streamId, correlationId, demangledName FROM "
                         "CUPTI_ACTIVITY_KIND_KERNEL",
                         -1, &rows, nullptr) != SQLITE_OK)
    return false;
  duckdb_appender appender = nullptr;
  if (!into.Run(fmt::format("CREATE TABLE kernels ({})", kColumns)) ||
      duckdb_appender_create(into.connection, nullptr, "kernels", &appender) != DuckDBSuccess)
    return false;
  while (sqlite3_step(rows) == SQLITE_ROW) {
    for (int i = 0; i < 6; ++i) {
      const int64_t value = sqlite3_column_int64(rows, i);
      if (i == 2 || i == 3 || i == 5)
        duckdb_append_int32(appender, static_cast<int32_t>(value));
      else
        duckdb_append_int64(appender, value);
    }
    duckdb_appender_end_row(appender);
  }
  const bool done = duckdb_appender_destroy(&appender) == DuckDBSuccess;
  sqlite3_finalize(rows);
  sqlite3_close(source);
  return done;
}

// The kernels' summary over the Parquet file; returns the sum of durations.
int64_t Summarize(Database& database, const std::string& parquet) {
  duckdb_result answer;
  const std::string sql = fmt::format(
      "SELECT name, count(*), CAST(sum(\"end\" - start) AS BIGINT) AS total, min(\"end\" - start), "
      "max(\"end\" - "
      "start), avg(\"end\" - start), stddev(\"end\" - start), quantile_disc(\"end\" - start, [0.5, 0.9, "
      "0.99]) "
      "FROM read_parquet('{}') GROUP BY name ORDER BY total DESC",
      parquet);
  if (!database.Run(sql, &answer)) return -1;
  int64_t total = 0;
  for (idx_t row = 0; row < duckdb_row_count(&answer); ++row) total += duckdb_value_int64(&answer, 2, row);
  duckdb_destroy_result(&answer);
  return total;
}

}  // namespace

int MeasureDuckDb(const std::string& path, const std::string& parquet) {
  const double begin = CpuSeconds();
  int64_t total_ns = 0;
  {
    Database database;
    if (!database.Open() || !Load(database, path) ||
        !database.Run(fmt::format("COPY kernels TO '{}' (FORMAT parquet)", parquet)))
      return 1;
    total_ns = Summarize(database, parquet);
  }
  const double cold = CpuSeconds();
  Database database;
  if (!database.Open() || total_ns < 0 || Summarize(database, parquet) != total_ns) return 1;
  fmt::print("{{\"cold_s\": {}, \"warm_s\": {}, \"kernel_ns\": {}}}\n", cold - begin, CpuSeconds() - cold,
             total_ns);
  return 0;
}
