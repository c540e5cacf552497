// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "importers/sqlite/table.h"

namespace gpusonde::importers::sqlite {

// Calls visit(row) for each row of a small table, with the columns in order; those that the table lacks are
// null.
template <class Visit>
Status ForEachRow(const Database& database, std::string_view name, std::span<const std::string_view> columns,
                  Visit&& visit) {
  ASSIGN_OR_RETURN(const std::optional<Table> table, database.FindTable(name));
  if (!table.has_value()) return {};
  std::vector<size_t> wanted, places;
  for (const std::string_view column : columns) {
    const std::optional<size_t> index = table->Find(column);
    places.push_back(wanted.size());
    if (index.has_value())
      wanted.push_back(*index);
    else
      places.back() = std::string_view::npos;
  }
  ASSIGN_OR_RETURN(const auto reader, table->Read(wanted));
  for (size_t part = 0; part < table->parts(); ++part) {
    TRY(reader->Seek(part));
    Row row;
    while (true) {
      ASSIGN_OR_RETURN(const bool more, reader->Next(row));
      if (!more) break;
      std::vector<Cell> cells;
      for (const size_t place : places) cells.push_back(place < wanted.size() ? row.cells[place] : Cell());
      visit(cells);
    }
  }
  return {};
}

}  // namespace gpusonde::importers::sqlite
