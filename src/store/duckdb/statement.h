// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/store.h"

namespace gpusonde::store::duckdb {

struct Statement {
  std::string sql;
  std::vector<Parameter> parameters;  // of the `?` that are left
};

// The statement with numbers and ids written into it as constants of their type. DuckDB (1.4) binds a scan
// with parameters twice: when it is prepared, and again with the values (PreparedStatement::CanCachePlan). Of
// queries over many views that was up to half of the CPU time. Texts and lists stay parameters, and so does
// everything if parameters are numbered (`?1`), or there are more or fewer values than `?`.
Statement WithConstants(std::string sql, std::span<const Parameter> parameters);

// The statement that an EXPLAIN is about: what follows the word, ANALYZE and options in brackets. Empty for
// other statements, and where a comment comes before these: then they are not looked for.
std::string_view ExplainedBy(std::string_view sql);

}  // namespace gpusonde::store::duckdb
