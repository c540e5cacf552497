// SPDX-License-Identifier: Apache-2.0
#include "store/queries/print_rows.h"

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
constexpr std::string_view kGap = "  ";  // between columns
// A shorter piece of text is not recognisable.
constexpr size_t kMinTextWidth = 8;

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
  TextTable(std::span<const Rows::Column> columns, size_t width) : widths_(columns.size(), 0), width_(width) {
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

  // The lines so far; later ones are at least as wide, as far as the width allows.
  std::string Take() {
    if (width_ > 0) Fit();
    std::string text;
    for (const std::vector<std::string>& line : lines_) {
      for (size_t i = 0; i < line.size(); ++i) {
        const std::string value = Shorten(line[i], widths_[i]);
        cut_ = cut_ || value.size() != line[i].size();
        const std::string padding(widths_[i] - CountCharacters(value), ' ');
        if (i != 0) text += kGap;
        text += to_the_right_[i] ? padding + value : value + padding;
      }
      text.erase(text.find_last_not_of(' ') + 1);
      text += '\n';
    }
    lines_.clear();
    return text;
  }

  bool cut() const { return cut_; }

 private:
  // Takes a character at a time from the widest column of text.
  void Fit() {
    size_t total = kGap.size() * (widths_.size() - 1);
    for (const size_t width : widths_) total += width;
    for (; total > width_; --total) {
      size_t* widest = nullptr;
      for (size_t i = 0; i < widths_.size(); ++i)
        if (!to_the_right_[i] && widths_[i] > kMinTextWidth && (widest == nullptr || widths_[i] > *widest))
          widest = &widths_[i];
      if (widest == nullptr) return;
      --*widest;
    }
  }

  std::vector<size_t> widths_;
  size_t width_;  // of a line; 0: any
  bool cut_ = false;
  std::vector<bool> to_the_right_;
  std::vector<std::vector<std::string>> lines_;
};

Result<Printed> PrintText(Rows& rows, std::FILE* file, size_t width) {
  TextTable table(rows.columns(), width);
  std::vector<std::string> values(rows.columns().size());
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more || table.IsFull()) TRY(Write(file, table.Take()));
    if (!more) return Printed{count, table.cut()};
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

Result<Printed> PrintJson(Rows& rows, std::FILE* file) {
  std::vector<std::string> keys;
  for (const std::string& name : UniqueNames(rows.columns())) keys.push_back(JsonString(name) + ": ");
  TRY(Write(file, "["));
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) {
      TRY(Write(file, count == 0 ? "]\n" : "\n]\n"));
      return Printed{count};
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

Result<Printed> PrintCsv(Rows& rows, std::FILE* file) {
  const std::span<const Rows::Column> columns = rows.columns();
  std::string line;
  for (size_t i = 0; i < columns.size(); ++i) line += (i == 0 ? "" : ",") + CsvField(columns[i].name);
  for (int64_t count = 0;; ++count) {
    TRY(Write(file, line + "\r\n"));
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return Printed{count};
    line.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      if (i != 0) line += ',';
      if (!rows.IsNull(i)) line += CsvField(rows.Display(i));
    }
  }
}

}  // namespace

Result<Printed> PrintRows(Rows& rows, RowFormat format, std::FILE* file, size_t width) {
  Result<Printed> printed = format == RowFormat::kText   ? PrintText(rows, file, width)
                            : format == RowFormat::kJson ? PrintJson(rows, file)
                                                         : PrintCsv(rows, file);
  if (printed.has_value() && std::fflush(file) != 0) return Fail(ErrnoError(errno, "write the answer"));
  return printed;
}

}  // namespace gpusonde::store
