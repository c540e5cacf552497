// SPDX-License-Identifier: Apache-2.0
#include "store/print_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/printable.h"
#include "store/json.h"

namespace gpusonde::store {
namespace {

constexpr size_t kRowsPerBlock = 1000;

Status Write(std::FILE* file, std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file) == text.size()) return {};
  return Fail(ErrnoError(errno, "write the answer"));
}

bool IsNumber(std::string_view type) {
  static constexpr std::array kNumbers = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT",
                                          "HUGEINT", "FLOAT",    "DOUBLE"};
  if (type.ends_with(']')) return false;
  return type.starts_with("DECIMAL") ||
         std::ranges::any_of(kNumbers, [&](const char* name) { return type.ends_with(name); });
}

class TextTable {
 public:
  explicit TextTable(std::span<const Rows::Column> columns) : widths_(columns.size(), 0) {
    std::vector<std::string> names;
    for (const Rows::Column& column : columns) {
      names.push_back(column.name);
      to_the_right_.push_back(IsNumber(column.type));
    }
    Add(names);
  }

  bool IsFull() const { return lines_.size() >= kRowsPerBlock; }

  void Add(const std::vector<std::string>& values) {
    std::vector<std::string>& line = lines_.emplace_back();
    for (size_t i = 0; i < values.size(); ++i) {
      line.push_back(Printable(values[i]));
      widths_[i] = std::max(widths_[i], CountCharacters(line.back()));
    }
  }

  // The lines so far; later ones are at least as wide.
  std::string Take() {
    std::string text;
    for (const std::vector<std::string>& line : lines_) {
      for (size_t i = 0; i < line.size(); ++i) {
        const std::string padding(widths_[i] - CountCharacters(line[i]), ' ');
        if (i != 0) text += "  ";
        text += to_the_right_[i] ? padding + line[i] : line[i] + padding;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n';
    }
    lines_.clear();
    return text;
  }

 private:
  std::vector<size_t> widths_;
  std::vector<bool> to_the_right_;
  std::vector<std::vector<std::string>> lines_;
};

Result<int64_t> PrintText(Rows& rows, std::FILE* file) {
  TextTable table(rows.columns());
  std::vector<std::string> values(rows.columns().size());
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more || table.IsFull()) TRY(Write(file, table.Take()));
    if (!more) return count;
    for (size_t i = 0; i < values.size(); ++i) values[i] = rows.Display(i);
    table.Add(values);
  }
}

std::vector<std::string> UniqueNames(std::span<const Rows::Column> columns) {
  std::set<std::string> taken;
  std::vector<std::string> names;
  for (const Rows::Column& column : columns) {
    std::string name = column.name;
    for (int number = 2; !taken.insert(name).second; ++number)
      name = fmt::format("{}_{}", column.name, number);
    names.push_back(name);
  }
  return names;
}

Result<int64_t> PrintJson(Rows& rows, std::FILE* file) {
  std::vector<std::string> keys;
  for (const std::string& name : UniqueNames(rows.columns())) keys.push_back(JsonString(name) + ": ");
  TRY(Write(file, "["));
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) {
      TRY(Write(file, count == 0 ? "]\n" : "\n]\n"));
      return count;
    }
    std::string line = count == 0 ? "\n{" : ",\n{";
    for (size_t i = 0; i < keys.size(); ++i) line += (i == 0 ? "" : ", ") + keys[i] + rows.Json(i);
    TRY(Write(file, line + "}"));
  }
}

// Lines within a field stay lines; what a terminal would act on is escaped.
std::string CsvField(std::string_view value) {
  std::string text = PrintableLines(value);
  if (!text.empty() && text.find_first_of(",\"\r\n") == std::string::npos) return text;
  for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at + 2))
    text.insert(at, 1, '"');
  return '"' + text + '"';
}

Result<int64_t> PrintCsv(Rows& rows, std::FILE* file) {
  const std::span<const Rows::Column> columns = rows.columns();
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) line += (i == 0 ? "" : ",") + CsvField(columns[i].name);
  for (int64_t count = 0;; ++count) {
    TRY(Write(file, line + "\r\n"));
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return count;
    line.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i != 0) line += ',';
      if (!rows.IsNull(i)) line += CsvField(rows.Display(i));
    }
  }
}

}  // namespace

Result<int64_t> PrintRows(Rows& rows, RowFormat format, std::FILE* file) {
  Result<int64_t> count = format == RowFormat::kText   ? PrintText(rows, file)
                          : format == RowFormat::kJson ? PrintJson(rows, file)
                                                       : PrintCsv(rows, file);
  if (count.has_value() && std::fflush(file) != 0) return Fail(ErrnoError(errno, "write the answer"));
  return count;
}

}  // namespace gpusonde::store
