// SPDX-License-Identifier: Apache-2.0
#include "server/sql_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/json_depth.h"
#include "base/json_writer.h"
#include "base/utf8.h"

namespace gpusonde::server {
namespace {

// Texts and lists beyond this are not copied: an answer has no room for them.
constexpr size_t kMaxValueSize = 4096;

std::string ValueJson(const store::Rows& rows, size_t column) {
  JsonWriter cut;
  if (const size_t elements = rows.ListSize(column); elements > kMaxValueSize)
    return cut.Value(fmt::format("a list of {} elements", elements)).Take();
  if (const std::string_view text = rows.Text(column); text.size() > kMaxValueSize)
    return cut.Value(Utf8Prefix(text, kMaxValueSize)).Take();
  return rows.Json(column);
}

// Rows that came as JSON, each as long as there are columns.
class JsonRows final : public store::Rows {
 public:
  JsonRows(std::vector<Column> columns, nlohmann::json rows)
      : columns_(std::move(columns)), rows_(std::move(rows)) {}

  std::span<const Column> columns() const override { return columns_; }
  Result<bool> Next() override { return ++next_ <= rows_.size(); }
  bool IsNull(size_t column) const override { return At(column).is_null(); }
  int64_t Int64(size_t column) const override {
    return At(column).is_number_integer() ? At(column).get<int64_t>() : 0;
  }
  double Float64(size_t column) const override {
    return At(column).is_number() ? At(column).get<double>() : 0;
  }
  std::string_view Text(size_t column) const override {
    return At(column).is_string() ? std::string_view(At(column).get_ref<const std::string&>())
                                  : std::string_view();
  }
  Id128 Id(size_t column) const override { return Id128::FromHex(Text(column)).value_or(Id128{}); }
  size_t ListSize(size_t column) const override { return At(column).is_array() ? At(column).size() : 0; }
  std::vector<Id128> IdList(size_t) const override { return {}; }
  std::vector<int64_t> Int64List(size_t) const override { return {}; }
  std::string Display(size_t column) const override {
    if (IsNull(column)) return "NULL";
    return At(column).is_string() ? std::string(Text(column)) : Json(column);
  }
  std::string Json(size_t column) const override {
    return At(column).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

 private:
  const nlohmann::json& At(size_t column) const { return rows_[next_ - 1][column]; }

  std::vector<Column> columns_;
  nlohmann::json rows_;
  size_t next_ = 0;
};

}  // namespace

Result<SqlAnswer> ParseSqlAnswer(const std::string& text) {
  if (IsTooDeep(text))
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the server's answer nests more than {} levels deep", kMaxJsonDepth));
  try {
    nlohmann::json json = nlohmann::json::parse(text);
    std::vector<store::Rows::Column> columns;
    for (const nlohmann::json& column : json.at("columns"))
      columns.push_back({column.at("name").get<std::string>(), column.at("type").get<std::string>()});
    for (const nlohmann::json& row : json.at("rows"))
      if (!row.is_array() || row.size() != columns.size())
        return Fail(ErrorCode::kCorrupt, "the server's answer has rows without columns");
    SqlAnswer answer{.more = json.at("more").get<bool>()};
    for (const nlohmann::json& error : json.at("errors"))
      answer.errors.emplace_back(error.at("host").get<std::string>(), error.at("message").get<std::string>());
    answer.rows = std::make_unique<JsonRows>(std::move(columns), std::move(json["rows"]));
    return answer;
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the server's answer is not a query result: {}", error.what()));
  }
}

std::string LimitedSql(std::string_view sql, int64_t rows) {
  constexpr std::string_view kSpace = " \t\r\n;";
  const size_t begin = std::min(sql.find_first_not_of(kSpace), sql.size());
  const size_t end = sql.find_last_not_of(kSpace);
  const std::string_view statement = sql.substr(begin, end == std::string_view::npos ? 0 : end + 1 - begin);
  constexpr std::string_view kExplain = "explain";
  if (statement.empty() || EqualsIgnoringCase(statement.substr(0, kExplain.size()), kExplain))
    return std::string(statement);
  // A line feed ends a comment at the end of the statement.
  return fmt::format("SELECT * FROM ({}\n) LIMIT {}", statement, rows);
}

std::string RowValuesJson(const store::Rows& rows) {
  std::string json;
  for (size_t column = 0; column < rows.columns().size(); ++column)
    json += (column == 0 ? "" : ",") + ValueJson(rows, column);
  return json;
}

}  // namespace gpusonde::server
