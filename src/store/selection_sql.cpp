// SPDX-License-Identifier: Apache-2.0
#include "store/selection_sql.h"

namespace gpusonde::store {
namespace {

// Stacks that show a name which contains the parameter. translate() folds ASCII only, as the filter promises;
// lower() would fold more.
constexpr std::string_view kStacksNamed = R"(
  WITH frames AS (
    SELECT location, unnest(functions) AS function FROM raw.locations
  ), names AS (
    SELECT frames.location, functions.name FROM frames JOIN raw.functions USING (function)
    UNION ALL
    SELECT location, CASE WHEN binaries."binary" IS NULL THEN '[unknown]'
                          ELSE format('[{}+0x{:x}]', binaries.name, coalesce(address, 0)) END
    FROM raw.locations LEFT JOIN raw.binaries USING ("binary") WHERE len(functions) = 0
  ), matching AS (
    SELECT DISTINCT location FROM names
    WHERE contains(translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), ?)
  )
  SELECT stack FROM (SELECT stack, unnest(locations) AS location FROM raw.stacks) SEMI JOIN matching USING (location))";

std::string AsciiLower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace

SelectionSql CpuSamplesIn(const model::Selection& selection) {
  SelectionSql sql{"state = 'on_cpu' AND time_ns >= ? AND time_ns < ?", {selection.from_ns, selection.to_ns}};
  if (selection.process.has_value()) {
    sql.condition += " AND process = ?";
    sql.parameters.emplace_back(*selection.process);
  }
  if (selection.process.has_value() && selection.tid.has_value()) {
    sql.condition += " AND tid = ?";
    sql.parameters.emplace_back(int64_t{*selection.tid});
  }
  if (!selection.filter.empty()) {
    sql.condition += " AND stack IN (";
    sql.condition += kStacksNamed;
    sql.condition += ")";
    sql.parameters.emplace_back(AsciiLower(selection.filter));
  }
  return sql;
}

}  // namespace gpusonde::store
