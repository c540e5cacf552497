// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "importers/activities/tables.h"
#include "importers/sqlite/table.h"

namespace gpusonde::importers::activities {

// The table of a database's texts, which other tables name by number. Thread-safe.
class Strings {
 public:
  // Without texts if the database has no such table. Errors: kUnsupported; those of reading the table.
  static Result<Strings> Open(const sqlite::Database& database, const Layout& layout);

  // A reader of the text of each row, for one thread; null without texts.
  Result<std::unique_ptr<sqlite::TableReader>> MakeReader() const;
  // The row of a text.
  std::optional<int64_t> RowidOf(int64_t number) const;

 private:
  std::optional<sqlite::Table> table_;
  size_t text_column_ = 0;
  // Rows by number, sorted. Empty in a profiler's own file, where each number is that of its row; a table
  // that was copied (CREATE TABLE … AS, DuckDB, pandas) has rows of its own.
  std::optional<std::vector<std::pair<int64_t, int64_t>>> rows_;
};

}  // namespace gpusonde::importers::activities
