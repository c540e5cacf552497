// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "importers/sqlite/connection.h"
#include "importers/sqlite/table.h"

// The two ways of reading a table; callers see TableReader only.
namespace gpusonde::importers::sqlite {

// Leaf pages of a part, about a MiB, are read at once and decoded in place.
class PageReader final : public TableReader {
 public:
  PageReader(const Table& table, std::span<const size_t> columns);
  Status Seek(size_t part) override;
  Result<bool> Next(Row& row) override;
  Result<bool> Find(int64_t rowid, Row& row) override;

  static size_t LeavesPerPart(const Table& table);

 private:
  // A column, up to the last one asked for.
  struct Slot {
    int16_t cell = -1;  // its place in cells_; −1: not wanted
    bool is_rowid = false;
    bool is_real = false;
  };

  // Where the wanted values of records with one header lie. Headers hold the types of all values, and nearly
  // every row of a table has one of a few: so columns that aren't wanted cost nothing.
  struct Plan {
    static constexpr size_t kMaxHeader = 96;
    enum class Kind : uint8_t { kNull, kInteger, kConstant, kRowid, kReal, kRealFromInteger, kText, kBlob };
    struct Value {
      Kind kind = Kind::kNull;
      uint8_t shift = 0;    // of integers: bits that 8 bytes have more than the value
      uint16_t cell = 0;    // in cells_
      uint32_t offset = 0;  // behind the header
      uint32_t size = 0;    // of texts and blobs; of constants the value
    };
    uint32_t header_size = 0;  // 0: none yet
    uint32_t end = 0;          // of the last value, behind the header
    uint32_t count = 0;
    std::array<uint8_t, kMaxHeader> header{};
    std::array<Value, Table::kMaxColumns> values{};
  };

  Status Load(size_t first_leaf, size_t count);
  Status EnterPage(size_t index);
  // The cell at `cell_` of the current page. Errors: kCorrupt.
  Status DecodeCell(Row& row);
  Status DecodeRecord(const uint8_t* p, const uint8_t* end, int64_t rowid);
  // Reads a header into `plan`.
  Status MakePlan(const uint8_t* p, const uint8_t* end, Plan& plan);
  static Plan::Value PlanOf(const Slot& slot, uint64_t type, uint64_t offset, uint64_t size);
  void Follow(const Plan& plan, const uint8_t* values, int64_t rowid);
  Status FollowOverflow(const uint8_t* local, size_t local_size, uint64_t payload_size);
  Error Corrupt(std::string_view what) const;

  const Table& table_;
  const Database& database_;
  static constexpr size_t kPlans = 256;

  std::vector<Slot> slots_;
  std::vector<Cell> cells_;        // of the columns asked for, and one that is always null
  std::vector<Plan> plans_;        // by a hash of the header
  std::vector<uint8_t> pages_;     // of the current part
  std::vector<uint8_t> overflow_;  // a payload that has overflow pages, put together
  std::vector<uint8_t> one_page_;
  size_t first_leaf_ = 0;
  size_t leaf_count_ = 0;
  size_t leaf_ = 0;  // index within the part
  const uint8_t* page_ = nullptr;
  size_t header_ = 0;  // where the page's b-tree header begins: 100 on page 1
  size_t cell_count_ = 0;
  size_t cell_ = 0;
};

// SELECT through libsqlite3, on a connection of its own.
class StatementReader final : public TableReader {
 public:
  static Result<std::unique_ptr<TableReader>> Create(const Table& table, std::span<const size_t> columns);
  Status Seek(size_t part) override;
  Result<bool> Next(Row& row) override;
  Result<bool> Find(int64_t rowid, Row& row) override;

 private:
  StatementReader(const Table& table, std::unique_ptr<Connection> connection, Statement statement,
                  size_t columns)
      : table_(table),
        connection_(std::move(connection)),
        statement_(std::move(statement)),
        cells_(columns + 1) {}
  void Bind(int64_t first, int64_t last);

  const Table& table_;
  std::unique_ptr<Connection> connection_;
  Statement statement_;
  std::vector<Cell> cells_;
};

}  // namespace gpusonde::importers::sqlite
