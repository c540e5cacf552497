// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/statement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "base/ascii.h"

namespace gpusonde::store::duckdb {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

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

// Takes a word, in any case, and the white space behind it from the text's begin.
bool TakeWord(std::string_view& text, std::string_view word) {
  std::string_view rest = text;
  if (!EqualsIgnoringCase(rest.substr(0, word.size()), word)) return false;
  rest.remove_prefix(word.size());
  const size_t next = std::min(rest.find_first_not_of(kSpace), rest.size());
  if (next == 0 && !rest.starts_with('(')) return false;
  text = rest.substr(next);
  return true;
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

std::string_view ExplainedBy(std::string_view sql) {
  sql.remove_prefix(std::min(sql.find_first_not_of(kSpace), sql.size()));
  if (!TakeWord(sql, "explain")) return {};
  TakeWord(sql, "analyze");
  const size_t end = sql.find(')');
  if (!sql.starts_with('(') || end == std::string_view::npos) return sql;
  const auto is_option = [](char c) { return IsLetter(c) || c == '_' || c == ',' || kSpace.contains(c); };
  return std::ranges::all_of(sql.substr(1, end - 1), is_option) ? sql.substr(end + 1) : sql;
}

}  // namespace gpusonde::store::duckdb
