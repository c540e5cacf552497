// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/ascii.h"
#include "importers/sqlite/connection.h"
#include "importers/sqlite/format.h"
#include "importers/sqlite/table.h"

namespace gpusonde::importers::sqlite {
namespace {

constexpr int64_t kRowsPerPart = 16'384;
constexpr uint64_t kMaxParts = 1 << 20;

// Section 3.1 of https://www.sqlite.org/datatype3.html.
bool HasRealAffinity(const std::string& type) {
  const auto contains = [upper = ToUpper(type)](std::string_view part) {
    return upper.find(part) != std::string::npos;
  };
  if (contains("INT") || contains("CHAR") || contains("CLOB") || contains("TEXT") || contains("BLOB"))
    return false;
  return contains("REAL") || contains("FLOA") || contains("DOUB");
}

}  // namespace

Database::~Database() = default;

Result<std::unique_ptr<Database>> Database::Open(const std::string& path, Access access,
                                                 uint64_t max_copy_bytes) {
  std::unique_ptr<Database> database(new Database);
  database->path_ = path;
  ASSIGN_OR_RETURN(database->copy_, SettledCopy::Make(path, max_copy_bytes));
  ASSIGN_OR_RETURN(database->fd_, gpusonde::Open(database->file(), O_RDONLY));
  ASSIGN_OR_RETURN(database->connection_, Connection::Open(database->file(), path));
  database->partial_ = access == Access::kPartial;
  TRY(database->ReadHeader());
  database->direct_ = database->direct_ && access != Access::kLibraryOnly;
  if (database->truncated_) database->connection_->AcceptTruncated();
  return database;
}

Status Database::ReadHeader() {
  std::array<uint8_t, kFileHeaderSize> header{};
  const ssize_t count = ::pread(fd_.get(), header.data(), header.size(), 0);
  if (count < 0) return Fail(ErrnoError(errno, "read " + path_));
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return Fail(ErrnoError(errno, "stat " + path_));
  if (static_cast<size_t>(count) < header.size())
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: an SQLite database of {} bytes; its header alone has {}", path_,
                            info.st_size, kFileHeaderSize));
  page_size_ = Big16(&header[kPageSizeOffset]);
  if (page_size_ == 1) page_size_ = kMaxPageSize;
  if (page_size_ < kMinPageSize || (page_size_ & (page_size_ - 1)) != 0)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: page size {} at byte {}", path_, page_size_, kPageSizeOffset));
  usable_size_ = page_size_ - header[kReservedOffset];
  page_count_ = static_cast<uint64_t>(info.st_size) / page_size_;
  const uint32_t said = Big32(&header[kPageCountOffset]);
  const bool valid = Big32(&header[kChangeCounterOffset]) == Big32(&header[kVersionValidForOffset]);
  truncated_ = valid && said > page_count_;
  if (truncated_ && !partial_)
    return Fail(
        ErrorCode::kCorrupt,
        fmt::format("{}: cut off: its header says {} pages of {} bytes, but it has {}; --partial reads "
                    "what is there",
                    path_, said, page_size_, page_count_));
  ASSIGN_OR_RETURN(unfinished_, HasPagesBehind(valid ? said : 0));
  if (unfinished_ && !partial_)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: it has {} pages of {} bytes, but its header says {}: it is still being "
                            "written, or its writer was stopped; --partial reads the pages of the header",
                            path_, page_count_, page_size_, said));
  direct_ = usable_size_ >= kMinUsableSize && Big32(&header[kTextEncodingOffset]) == 1;
  return {};
}

Result<bool> Database::HasPagesBehind(uint64_t said) const {
  if (said == 0 || said >= page_count_) return false;
  std::vector<uint8_t> page(page_size_);
  TRY(ReadPages(static_cast<uint32_t>(said + 1), page));
  return std::ranges::any_of(page, [](uint8_t byte) { return byte != 0; });
}

Status Database::ReadPages(uint32_t first, std::span<uint8_t> into) const {
  if (first == 0 || first - 1 + into.size() / page_size_ > page_count_)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: a reference to page {} of {}", path_, first, page_count_));
  const uint64_t offset = uint64_t{first - 1} * page_size_;
  ASSIGN_OR_RETURN(const size_t size, ReadAt(fd_.get(), offset, std::as_writable_bytes(into), path_));
  if (size < into.size())
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: ends at byte {} while being read", path_, offset + size));
  return {};
}

Result<std::vector<std::string>> Database::TableNames() const {
  ASSIGN_OR_RETURN(
      Statement statement,
      connection_->Prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0 AND "
                           "name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"));
  std::vector<std::string> names;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, statement.Step());
    if (!more) return names;
    names.push_back(statement.Text(0));
  }
}

Result<bool> Database::HasView(std::string_view name) const {
  ASSIGN_OR_RETURN(
      Statement statement,
      connection_->Prepare("SELECT 1 FROM sqlite_schema WHERE type = 'view' AND name = ?1 COLLATE NOCASE"));
  sqlite3_bind_text(statement.get(), 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
  return statement.Step();
}

Result<std::optional<Table>> Database::FindTable(std::string_view name) const {
  ASSIGN_OR_RETURN(Statement statement,
                   connection_->Prepare("SELECT name, rootpage FROM sqlite_schema WHERE type = 'table' AND "
                                        "rootpage > 0 AND name = ?1 COLLATE NOCASE"));
  sqlite3_bind_text(statement.get(), 1, name.data(), static_cast<int>(name.size()), SQLITE_STATIC);
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return std::optional<Table>();
  Table table;
  table.database_ = this;
  table.name_ = statement.Text(0);
  const int64_t root = sqlite3_column_int64(statement.get(), 1);
  table.direct_ = direct_ && root <= std::numeric_limits<uint32_t>::max();
  table.root_ = table.direct_ ? static_cast<uint32_t>(root) : 0;
  TRY(ReadColumns(table));
  if (table.direct_) TRY(FindLeaves(table));
  if (!table.direct_) TRY(FindParts(table));
  return table;
}

Status Database::ReadColumns(Table& table) const {
  ASSIGN_OR_RETURN(Statement statement,
                   connection_->Prepare(
                       "SELECT name, type, dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?1)"));
  sqlite3_bind_text(statement.get(), 1, table.name_.data(), static_cast<int>(table.name_.size()),
                    SQLITE_STATIC);
  int keys = 0;
  size_t key = 0;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, statement.Step());
    if (!more) break;
    Column column;
    column.name = statement.Text(0);
    const std::string type = statement.Text(1);
    column.is_real = HasRealAffinity(type);
    if (sqlite3_column_int(statement.get(), 3) != 0) {
      ++keys;
      key = table.columns_.size();
      column.is_rowid = ToUpper(type) == "INTEGER";
    }
    // Rows older than a column have its default; generated columns are not stored.
    if (sqlite3_column_int(statement.get(), 2) != 0 || sqlite3_column_int(statement.get(), 4) != 0)
      table.direct_ = false;
    table.columns_.push_back(std::move(column));
  }
  ASSIGN_OR_RETURN(const bool indexed, HasKeyIndex(table.name_));
  for (size_t i = 0; i < table.columns_.size(); ++i)
    if (keys != 1 || i != key || indexed) table.columns_[i].is_rowid = false;
  return {};
}

// INTEGER PRIMARY KEY DESC is not an alias of the rowid (https://www.sqlite.org/lang_createtable.html) and so
// has an index of its own.
Result<bool> Database::HasKeyIndex(const std::string& table) const {
  ASSIGN_OR_RETURN(Statement statement,
                   connection_->Prepare("SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk'"));
  sqlite3_bind_text(statement.get(), 1, table.data(), static_cast<int>(table.size()), SQLITE_STATIC);
  return statement.Step();
}

// Walks the interior pages; a file of 100 M rows has a few thousand.
Status Database::FindLeaves(Table& table) const {
  struct Todo {
    uint32_t page;
    int64_t last_rowid;
    int depth;
  };
  std::vector<Todo> todo = {{table.root_, std::numeric_limits<int64_t>::max(), 0}};
  std::vector<uint8_t> page(page_size_);
  int leaf_depth = -1;  // all leaves of a b-tree are equally deep
  uint64_t seen = 0;
  const auto corrupt = [&](uint32_t number, std::string_view what) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{}: table {}: page {}: {}", path_, table.name_, number, what));
  };
  while (!todo.empty()) {
    const Todo here = todo.back();
    todo.pop_back();
    if (truncated_ && here.page > page_count_) continue;
    if (++seen > page_count_) return corrupt(here.page, "reached twice");
    if (here.depth == leaf_depth) {
      table.leaves_.push_back({here.page, here.last_rowid});
      continue;
    }
    if (here.depth > kMaxDepth) return corrupt(here.page, "too deep");
    TRY(ReadPages(here.page, page));
    const size_t start = here.page == 1 ? kFileHeaderSize : 0;
    const uint8_t type = page[start];
    if (type == kLeafTablePage) {
      if (leaf_depth >= 0) return corrupt(here.page, "leaves of different depths");
      leaf_depth = here.depth;
      table.leaves_.push_back({here.page, here.last_rowid});
      continue;
    }
    if (here.depth == 0 && (type == kLeafIndexPage || type == kInteriorIndexPage)) {  // WITHOUT ROWID
      table.direct_ = false;
      return {};
    }
    if (type != kInteriorTablePage)
      return corrupt(here.page, fmt::format("type {} where a table's page belongs", type));
    const size_t cells = Big16(&page[start + kCellCountOffset]);
    if (start + kInteriorHeaderSize + 2 * cells > usable_size_)
      return corrupt(here.page, "more cells than fit");
    const size_t first_child = todo.size();
    for (size_t i = 0; i < cells; ++i) {
      const size_t cell = Big16(&page[start + kInteriorHeaderSize + 2 * i]);
      if (cell + 4 >= usable_size_) return corrupt(here.page, fmt::format("cell {} outside the page", i));
      const uint8_t* p = &page[cell + 4];
      uint64_t rowid = 0;
      if (!ReadVarint(p, page.data() + usable_size_, rowid))
        return corrupt(here.page, fmt::format("cell {} ends outside the page", i));
      todo.push_back({Big32(&page[cell]), static_cast<int64_t>(rowid), here.depth + 1});
    }
    todo.push_back({Big32(&page[start + kRightmostChildOffset]), here.last_rowid, here.depth + 1});
    std::reverse(todo.begin() + static_cast<std::ptrdiff_t>(first_child), todo.end());
  }
  return {};
}

Status Database::FindParts(Table& table) const {
  const auto probe = connection_->Prepare("SELECT min(_rowid_), max(_rowid_) FROM " + Quote(table.name_));
  table.has_rowids_ = probe.has_value() && !table.Find("_rowid_").has_value();
  if (!table.has_rowids_) return {};
  ASSIGN_OR_RETURN(Statement statement,
                   connection_->Prepare("SELECT min(_rowid_), max(_rowid_) FROM " + Quote(table.name_)));
  ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found || sqlite3_column_type(statement.get(), 0) == SQLITE_NULL) return {};
  const int64_t first = sqlite3_column_int64(statement.get(), 0);
  table.last_rowid_ = sqlite3_column_int64(statement.get(), 1);
  const uint64_t span = static_cast<uint64_t>(table.last_rowid_) - static_cast<uint64_t>(first);
  const uint64_t step = std::max<uint64_t>(kRowsPerPart, span / kMaxParts + 1);
  for (uint64_t at = 0;; at += step) {
    table.part_rowids_.push_back(static_cast<int64_t>(static_cast<uint64_t>(first) + at));
    if (span - at < step) return {};
  }
}

std::optional<size_t> Table::Find(std::string_view column) const {
  const std::string wanted = ToUpper(std::string(column));
  for (size_t i = 0; i < columns_.size(); ++i)
    if (ToUpper(columns_[i].name) == wanted) return i;
  return std::nullopt;
}

}  // namespace gpusonde::importers::sqlite
