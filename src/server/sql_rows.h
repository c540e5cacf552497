// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/store.h"

// Answers to SQL of users as JSON, within bounds.
namespace gpusonde::server {

// The statement as a subquery of at most so many rows, so that no more are made than are shown or counted.
// EXPLAIN has few rows and can't be one: it stays as it is.
std::string LimitedSql(std::string_view sql, int64_t rows);

// The values of the current row as JSON with commas between them; of texts 4 kB, and instead of a longer list
// how long it is.
std::string RowValuesJson(const store::Rows& rows);

// An answer of /api/v1/query (docs/api.md), as a client reads it.
struct SqlAnswer {
  std::unique_ptr<store::Rows> rows;  // texts, whole numbers and numbers; other values as JSON
  bool more = false;                  // there are more rows than the limit
  std::vector<std::pair<std::string, std::string>> errors;  // hosts without an answer, and why
};
// Errors: kCorrupt for anything else.
Result<SqlAnswer> ParseSqlAnswer(const std::string& json);

}  // namespace gpusonde::server
