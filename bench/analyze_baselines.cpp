// SPDX-License-Identifier: Apache-2.0
// The baselines of gpusonde analyze (bench/analyze_bench.py); each prints its CPU seconds:
//
//   bench_analyze_baselines scan FILE.sqlite
//       libsqlite3's count(*), sum(end-start) of the event tables, mapped
//   bench_analyze_baselines scan-kernels FILE.sqlite
//       the same for the kernels alone
//   bench_analyze_baselines duckdb FILE.sqlite CACHE.parquet
//       the kernel summary through DuckDB (analyze_duckdb.h)
//   bench_analyze_baselines simdjson FILE.json
//       an on-demand pass that reads name, cat, ts, dur and correlation

#include <fmt/format.h>
#include <simdjson.h>
#include <sqlite3.h>

#include <cstdint>
#include <cstdio>
#include <ctime>
#include <initializer_list>
#include <string>
#include <string_view>

#include "analyze_duckdb.h"

namespace {

// CPU time of this single-threaded process, which excludes other programs.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

int Scan(const std::string& path, std::initializer_list<const char*> tables) {
  sqlite3* database = nullptr;
  if (sqlite3_open_v2(("file:" + path + "?immutable=1").c_str(), &database,
                      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr) != SQLITE_OK)
    return 1;
  sqlite3_exec(database, "PRAGMA mmap_size = 1000000000000", nullptr, nullptr, nullptr);
  const double begin = CpuSeconds();
  int64_t rows = 0;
  for (const char* table : tables) {
    sqlite3_stmt* statement = nullptr;
    const std::string sql =
        fmt::format("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_{}", table);
    if (sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) continue;
    if (sqlite3_step(statement) == SQLITE_ROW) rows += sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
  }
  fmt::print("{{\"seconds\": {}, \"rows\": {}}}\n", CpuSeconds() - begin, rows);
  sqlite3_close(database);
  return 0;
}

int ParseJson(const std::string& path) {
  simdjson::padded_string json;
  if (simdjson::padded_string::load(path).get(json) != simdjson::SUCCESS) return 1;
  const double begin = CpuSeconds();
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document;
  if (parser.iterate(json).get(document) != simdjson::SUCCESS) return 1;
  simdjson::ondemand::array events;
  simdjson::ondemand::object top;
  const bool is_object = document.get_object().get(top) == simdjson::SUCCESS;
  if (is_object ? top["traceEvents"].get_array().get(events) != simdjson::SUCCESS
                : document.get_array().get(events) != simdjson::SUCCESS)
    return 1;
  uint64_t count = 0;
  uint64_t taken = 0;
  for (auto element : events) {
    simdjson::ondemand::object event;
    if (element.get_object().get(event) != simdjson::SUCCESS) continue;
    ++count;
    for (auto field : event) {
      const std::string_view key = field.unescaped_key().value_unsafe();
      std::string_view text;
      double number = 0;
      if (key == "name" || key == "cat") {
        if (field.value().get_string().get(text) == simdjson::SUCCESS) taken += text.size();
      } else if (key == "ts" || key == "dur") {
        if (field.value().get_double().get(number) == simdjson::SUCCESS)
          taken += static_cast<uint64_t>(number);
      } else if (key == "args") {
        simdjson::ondemand::object arguments;
        int64_t correlation = 0;
        if (field.value().get_object().get(arguments) == simdjson::SUCCESS &&
            arguments["correlation"].get_int64().get(correlation) == simdjson::SUCCESS)
          taken += static_cast<uint64_t>(correlation);
      }
    }
  }
  fmt::print("{{\"seconds\": {}, \"events\": {}, \"bytes\": {}, \"taken\": {}}}\n", CpuSeconds() - begin,
             count, json.size(), taken);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "scan") return Scan(argv[2], {"KERNEL", "MEMCPY", "MEMSET", "RUNTIME"});
  if (what == "scan-kernels") return Scan(argv[2], {"KERNEL"});
  if (argc == 4 && std::string_view(argv[1]) == "duckdb") return MeasureDuckDb(argv[2], argv[3]);
  if (what == "simdjson") return ParseJson(argv[2]);
  fmt::print(stderr,
             "usage: bench_analyze_baselines scan|scan-kernels|simdjson FILE, or duckdb FILE PARQUET\n");
  return 2;
}
