// SPDX-License-Identifier: Apache-2.0
#include "convert/needed_events.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/ascii.h"
#include "model/schema.h"

namespace gpusonde::convert {
namespace {

constexpr std::array kGpuTables = {std::string_view("devices"), std::string_view("kernels"),
                                   std::string_view("memcpys"), std::string_view("memsets"),
                                   std::string_view("syncs")};

// How the words begin of DuckDB's statements and functions that list tables, or read one whose name is a
// value: SHOW, DESCRIBE, SUMMARIZE, PRAGMA, query(), query_table(), duckdb_tables(), information_schema,
// sqlite_master, pg_catalog, json_execute_serialized_sql().
constexpr std::array kDynamic = {
    std::string_view("show"),   std::string_view("desc"),          std::string_view("summarize"),
    std::string_view("pragma"), std::string_view("query"),         std::string_view("duckdb"),
    std::string_view("sqlite"), std::string_view("information"),   std::string_view("pg_"),
    std::string_view("json_"),  std::string_view("from_substrait")};

bool IsWord(char c) { return IsLetterOrDigit(c) || c == '_'; }

bool AllowsGpuWorkOnly(std::string_view word) {
  if (std::ranges::any_of(kDynamic, [&](std::string_view begin) { return word.starts_with(begin); }))
    return word == "desc";  // of ORDER BY
  return model::FindTable(word) == nullptr || std::ranges::find(kGpuTables, word) != kGpuTables.end();
}

}  // namespace

bool NeedsOnlyGpuWork(std::string_view sql) {
  std::string word;
  for (size_t at = 0; at <= sql.size(); ++at) {
    if (at < sql.size() && IsWord(sql[at])) {
      word += Lower(sql[at]);
      continue;
    }
    if (!word.empty() && !AllowsGpuWorkOnly(word)) return false;
    word.clear();
  }
  return true;
}

}  // namespace gpusonde::convert
