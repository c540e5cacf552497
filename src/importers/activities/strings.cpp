// SPDX-License-Identifier: Apache-2.0
#include "importers/activities/strings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace gpusonde::importers::activities {

Result<Strings> Strings::Open(const sqlite::Database& database, const Layout& layout) {
  constexpr size_t kMaxRows = size_t{4} << 20;  // 64 MiB
  Strings strings;
  ASSIGN_OR_RETURN(std::optional<sqlite::Table> table, database.FindTable(layout.strings));
  if (!table.has_value()) return strings;
  const std::optional<size_t> number = table->Find(layout.string_id);
  const std::optional<size_t> text = table->Find("value");
  if (!number.has_value() || !text.has_value()) return strings;
  strings.text_column_ = *text;
  if (!table->columns()[*number].is_rowid) {
    strings.rows_.emplace();
    ASSIGN_OR_RETURN(const auto reader, table->Read(std::array{*number}));
    sqlite::Row row;
    for (size_t part = 0; part < table->parts(); ++part) {
      TRY(reader->Seek(part));
      while (true) {
        ASSIGN_OR_RETURN(const bool more, reader->Next(row));
        if (!more) break;
        if (strings.rows_->size() == kMaxRows)
          return Fail(ErrorCode::kUnsupported,
                      fmt::format("{} is a copy of more than {} rows; make its column {} INTEGER PRIMARY KEY",
                                  layout.strings, kMaxRows, layout.string_id));
        if (row.cells[0].is_integer()) strings.rows_->emplace_back(row.cells[0].integer, row.rowid);
      }
    }
    std::ranges::sort(*strings.rows_);
  }
  strings.table_ = std::move(table);
  return strings;
}

Result<std::unique_ptr<sqlite::TableReader>> Strings::MakeReader() const {
  if (!table_.has_value()) return std::unique_ptr<sqlite::TableReader>();
  return table_->Read(std::array{text_column_});
}

std::optional<int64_t> Strings::RowidOf(int64_t number) const {
  if (!rows_.has_value()) return number;
  const auto row = std::ranges::lower_bound(*rows_, number, {}, &std::pair<int64_t, int64_t>::first);
  if (row == rows_->end() || row->first != number) return std::nullopt;
  return row->second;
}

}  // namespace gpusonde::importers::activities
