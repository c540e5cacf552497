// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "importers/sqlite/settled_copy.h"

// Fast reading of SQLite tables: rows are decoded in place, because libsqlite3 takes 480-580 ns to return 16
// columns of a row, nearly all of it in its virtual machine. The file format is documented and stable
// (https://www.sqlite.org/fileformat2.html, called "format" below).
//
// Unusual files go through libsqlite3 instead: UTF-16, a table without rowids, generated columns, defaults of
// added columns. Both ways give the same rows (see the tests).
namespace gpusonde::importers::sqlite {

enum class CellType : uint8_t { kNull, kInteger, kReal, kText, kBlob };

struct Cell {
  CellType type = CellType::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string_view bytes;  // of texts and blobs; valid until the next row

  bool is_integer() const { return type == CellType::kInteger; }
};

// A row's cells are in the order of the requested columns; an additional last one is always null.
struct Row {
  int64_t rowid = 0;
  std::span<const Cell> cells;
};

// Rows as integers. `values` has `stride` numbers for each row: the requested columns in order, and a 0. A
// value that isn't an integer is 0, and its bit in `integers` isn't set.
struct IntegerRows {
  size_t count = 0;
  size_t stride = 0;
  std::span<const int64_t> values;
  std::span<const uint64_t> integers;  // by row; bit i is column i
};

struct Column {
  std::string name;
  bool is_rowid = false;  // INTEGER PRIMARY KEY: another name of the rowid, stored as NULL
  bool is_real = false;   // whole numbers in it are stored as integers and read as reals
};

// The rows of one table, as libsqlite3's `select … from table` returns them, in parts.
class TableReader {
 public:
  virtual ~TableReader() = default;
  // Begins a part; `part` < Table::parts().
  virtual Status Seek(size_t part) = 0;
  // Returns false at the part's end. Errors: kCorrupt with page and byte; kIo.
  virtual Result<bool> Next(Row& row) = 0;
  // Like Next for several rows at once, as integers: half the work. Rows are valid until the next call. If a
  // row fails, a call returns the rows before it, and the next call fails.
  virtual Result<bool> NextIntegers(IntegerRows& rows) = 0;
  // Finds the row with this rowid; false if there is none. Ends any part begun.
  virtual Result<bool> Find(int64_t rowid, Row& row) = 0;
};

class Connection;
class Database;

// One table of an open database. Thread-safe; must not outlive it.
class Table {
 public:
  const std::string& name() const { return name_; }
  std::span<const Column> columns() const { return columns_; }
  // The index of a column; empty if the table doesn't have it. Case-insensitive, as in SQL.
  std::optional<size_t> Find(std::string_view column) const;
  // Parts of about a MiB, or of 16,384 rows where libsqlite3 reads them.
  size_t parts() const;
  // Whether pages are decoded directly.
  bool is_direct() const { return direct_; }
  // A reader for one thread; `columns` are indices into columns(), at most kMaxColumns.
  Result<std::unique_ptr<TableReader>> Read(std::span<const size_t> columns) const;

  static constexpr size_t kMaxColumns = 32;

 private:
  friend class Database;
  friend class PageReader;
  friend class StatementReader;

  // A leaf page and the largest rowid on it and before it.
  struct Leaf {
    uint32_t page = 0;
    int64_t last_rowid = 0;
  };

  const Database* database_ = nullptr;
  std::string name_;
  uint32_t root_ = 0;
  bool direct_ = false;
  std::vector<Column> columns_;
  std::vector<Leaf> leaves_;  // in order of rowids, when direct
  bool has_rowids_ = true;
  std::vector<int64_t> part_rowids_;  // the first rowid of each part, when not; none: one part with all
  int64_t last_rowid_ = 0;
};

enum class Access : uint8_t {
  kFastest,      // decode pages where that is possible
  kLibraryOnly,  // libsqlite3 throughout: the oracle of the tests, and for comparison
  kPartial       // as kFastest; of a file that is cut off, tables have the pages that are there
};

// A database file, open for reading.
class Database {
 public:
  // Errors: kNotFound, kPermissionDenied, kCorrupt (libsqlite3's own message), kIo.
  // If a journal or log beside the file holds its last changes, a copy is read, of at most `max_copy_bytes`
  // (settled_copy.h).
  static Result<std::unique_ptr<Database>> Open(
      const std::string& path, Access access = Access::kFastest,
      uint64_t max_copy_bytes = std::numeric_limits<uint64_t>::max());
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // Whether the file is cut off, or not all written yet; then it was opened as kPartial.
  bool truncated() const { return truncated_ || unfinished_; }
  // Tables by name, without views, virtual tables and SQLite's own.
  Result<std::vector<std::string>> TableNames() const;
  // Views aren't read: one of an untrusted file may compute without end.
  Result<bool> HasView(std::string_view name) const;
  // The table of that name with its parts; nothing if there is none. Errors: kCorrupt.
  Result<std::optional<Table>> FindTable(std::string_view name) const;

 private:
  friend class Table;
  friend class PageReader;
  friend class StatementReader;
  Database() = default;
  Status ReadHeader();
  // Whether there is nonzero data after the pages that the header declares; zeros are preallocated space.
  // `said` is 0 if the header declares no size.
  Result<bool> HasPagesBehind(uint64_t said) const;
  Status ReadColumns(Table& table) const;
  Result<bool> HasKeyIndex(const std::string& table) const;
  Status FindLeaves(Table& table) const;
  Status FindParts(Table& table) const;
  // Reads consecutive pages, as many as `into` holds. Errors: kCorrupt for missing pages; kIo.
  Status ReadPages(uint32_t first, std::span<uint8_t> into) const;

  std::string file() const { return copy_.has_value() ? copy_->path() : path_; }

  std::string path_;
  std::optional<SettledCopy> copy_;
  bool direct_ = false;
  bool partial_ = false;
  bool truncated_ = false;
  bool unfinished_ = false;
  uint32_t page_size_ = 0;
  uint32_t usable_size_ = 0;  // page size less the reserved bytes at the end of each page
  uint64_t page_count_ = 0;
  Fd fd_;
  std::unique_ptr<Connection> connection_;  // for the schema, not for rows
};

}  // namespace gpusonde::importers::sqlite
