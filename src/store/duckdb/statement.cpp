// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/statement.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/ascii.h"

namespace gpusonde::store::duckdb {
namespace {

// A plain number would be of the smallest type that holds it, in which sums overflow.
std::optional<std::string> ConstantOf(const Parameter& parameter) {
  if (const auto* integer = std::get_if<int64_t>(&parameter)) return fmt::format("'{}'::BIGINT", *integer);
  if (const auto* number = std::get_if<double>(&parameter)) return fmt::format("'{}'::DOUBLE", *number);
  if (const auto* id = std::get_if<Id128>(&parameter)) return fmt::format("'{}'::UUID", id->ToHex());
  return std::nullopt;
}

// Where the `?` are that stand for values: not in texts, quoted names and comments. None if some are
// numbered.
std::vector<size_t> FindPlaceholders(const std::string& sql) {
  std::vector<size_t> found;
  size_t at = 0;
  const auto skip_behind = [&](std::string_view end) {
    const size_t next = sql.find(end, at);
    at = next == std::string::npos ? sql.size() : next + end.size();
  };
  while (at < sql.size()) {
    const char c = sql[at++];
    if (c == '?' && at < sql.size() && IsDigit(sql[at])) return {};
    if (c == '?')
      found.push_back(at - 1);
    else if (c == '\'' || c == '"')
      skip_behind(std::string_view(&c, 1));
    else if (c == '-' && at < sql.size() && sql[at] == '-')
      skip_behind("\n");
    else if (c == '/' && at < sql.size() && sql[at] == '*')
      skip_behind("*/");
  }
  return found;
}

}  // namespace

Statement WithConstants(std::string sql, std::span<const Parameter> parameters) {
  const std::vector<size_t> placeholders = parameters.empty() ? std::vector<size_t>() : FindPlaceholders(sql);
  if (placeholders.size() != parameters.size())
    return {std::move(sql), std::vector(parameters.begin(), parameters.end())};
  Statement statement;
  size_t copied = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const std::optional<std::string> constant = ConstantOf(parameters[i]);
    if (!constant.has_value()) {
      statement.parameters.push_back(parameters[i]);
      continue;
    }
    statement.sql.append(sql, copied, placeholders[i] - copied);
    statement.sql += *constant;
    copied = placeholders[i] + 1;
  }
  statement.sql.append(sql, copied);
  return statement;
}

}  // namespace gpusonde::store::duckdb
