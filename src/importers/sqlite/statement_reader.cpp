// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "importers/sqlite/readers.h"

namespace gpusonde::importers::sqlite {

Result<std::unique_ptr<TableReader>> StatementReader::Create(const Table& table,
                                                             std::span<const size_t> columns) {
  ASSIGN_OR_RETURN(auto connection, Connection::Open(table.database_->file(), table.database_->path_));
  std::string sql = table.has_rowids_ ? "SELECT _rowid_" : "SELECT 0";
  for (const size_t column : columns) sql += ", " + Quote(table.columns_[column].name);
  sql += " FROM " + Quote(table.name_);
  if (table.has_rowids_) sql += " WHERE _rowid_ BETWEEN ?1 AND ?2 ORDER BY _rowid_";
  ASSIGN_OR_RETURN(Statement statement, connection->Prepare(sql));
  return std::unique_ptr<TableReader>(
      new StatementReader(table, std::move(connection), std::move(statement), columns.size()));
}

void StatementReader::Bind(int64_t first, int64_t last) {
  sqlite3_reset(statement_.get());
  if (!table_.has_rowids_) return;
  sqlite3_bind_int64(statement_.get(), 1, first);
  sqlite3_bind_int64(statement_.get(), 2, last);
}

Status StatementReader::Seek(size_t part) {
  if (!table_.has_rowids_) {
    Bind(0, 0);
    return {};
  }
  const bool last = part + 1 == table_.part_rowids_.size();
  Bind(table_.part_rowids_[part], last ? table_.last_rowid_ : table_.part_rowids_[part + 1] - 1);
  return {};
}

Result<bool> StatementReader::Next(Row& row) {
  ASSIGN_OR_RETURN(const bool found, statement_.Step());
  if (!found) return false;
  sqlite3_stmt* const statement = statement_.get();
  row.rowid = sqlite3_column_int64(statement, 0);
  for (size_t i = 0; i + 1 < cells_.size(); ++i) {
    Cell& cell = cells_[i];
    const int column = static_cast<int>(i) + 1;
    switch (sqlite3_column_type(statement, column)) {
      case SQLITE_INTEGER:
        cell.type = CellType::kInteger;
        cell.integer = sqlite3_column_int64(statement, column);
        break;
      case SQLITE_FLOAT:
        cell.type = CellType::kReal;
        cell.real = sqlite3_column_double(statement, column);
        break;
      case SQLITE_NULL:
        cell.type = CellType::kNull;
        break;
      default: {
        const bool text = sqlite3_column_type(statement, column) == SQLITE_TEXT;
        cell.type = text ? CellType::kText : CellType::kBlob;
        // Of a text in UTF-16 this is the conversion to UTF-8.
        const void* bytes =
            text ? sqlite3_column_text(statement, column) : sqlite3_column_blob(statement, column);
        cell.bytes = {static_cast<const char*>(bytes),
                      static_cast<size_t>(sqlite3_column_bytes(statement, column))};
      }
    }
  }
  row.cells = cells_;
  return true;
}

Result<bool> StatementReader::NextIntegers(IntegerRows& rows) {
  size_t count = 0;
  Row row;
  ASSIGN_OR_RETURN(const bool more, Next(row));
  if (more) {
    uint64_t& integers = integers_.IntegersAt(0);
    integers = 0;
    for (size_t i = 0; i < row.cells.size(); ++i) {
      const bool is_integer = row.cells[i].is_integer();
      integers_.RowAt(0)[i] = is_integer ? row.cells[i].integer : 0;
      integers |= uint64_t{is_integer} << i;
    }
    count = 1;
  }
  rows = integers_.First(count);
  return more;
}

Result<bool> StatementReader::Find(int64_t rowid, Row& row) {
  if (!table_.has_rowids_) return false;
  Bind(rowid, rowid);
  return Next(row);
}

size_t Table::parts() const {
  if (direct_) {
    const size_t per_part = PageReader::LeavesPerPart(*this);
    return (leaves_.size() + per_part - 1) / per_part;
  }
  return has_rowids_ ? part_rowids_.size() : 1;
}

Result<std::unique_ptr<TableReader>> Table::Read(std::span<const size_t> columns) const {
  if (direct_) return std::make_unique<PageReader>(*this, columns);
  return StatementReader::Create(*this, columns);
}

}  // namespace gpusonde::importers::sqlite
