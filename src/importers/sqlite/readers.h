// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "importers/sqlite/connection.h"
#include "importers/sqlite/table.h"

// The two implementations of TableReader; callers only see the interface.
namespace gpusonde::importers::sqlite {

// Buffers of TableReader::NextIntegers.
class IntegerBuffer {
 public:
  // Large enough to make the call cheap, and small enough for the first-level cache.
  static constexpr size_t kRows = 64;

  explicit IntegerBuffer(size_t columns) : stride_(columns + 1), values_(kRows * stride_), integers_(kRows) {}

  int64_t* RowAt(size_t row) { return &values_[row * stride_]; }
  uint64_t& IntegersAt(size_t row) { return integers_[row]; }
  IntegerRows First(size_t count) const {
    return {.count = count, .stride = stride_, .values = values_, .integers = integers_};
  }

 private:
  size_t stride_;
  std::vector<int64_t> values_;
  std::vector<uint64_t> integers_;
};

// Reads the leaf pages of a part some at a time and decodes them in place.
class PageReader final : public TableReader {
 public:
  PageReader(const Table& table, std::span<const size_t> columns);
  Status Seek(size_t part) override;
  Result<bool> Next(Row& row) override;
  Result<bool> NextIntegers(IntegerRows& rows) override;
  Result<bool> Find(int64_t rowid, Row& row) override;

  static size_t LeavesPerPart(const Table& table);

 private:
  // A column, up to the last one asked for.
  struct Slot {
    int16_t cell = -1;  // its place in cells_; −1: not wanted
    bool is_rowid = false;
    bool is_real = false;
  };

  // The places of wanted values in records with a given header. A header holds the types of all values, and
  // nearly every row of a table has one of a few headers, up to its last wanted column: so unwanted columns
  // cost nothing.
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
    // The same value as an integer, without branches: the 8 bytes at `offset`, shifted, masked, plus the
    // constant.
    struct Integer {
      uint32_t offset = 0;
      uint8_t cell = 0;
      uint8_t shift = 0;
      int8_t keep = 0;  // sign-extended: all bits or none
      uint8_t constant = 0;
    };
    static_assert(sizeof(Integer) == 8);  // so that the plans of a table stay in the first-level cache
    uint32_t header_size = 0;             // 0: none yet
    uint32_t compared = 0;                // bytes of the header, up to the type of the last wanted column
    uint32_t end = 0;                     // of the last value, behind the header
    uint32_t count = 0;
    std::array<uint8_t, kMaxHeader + 8> header{};  // what is compared, and zeros behind it
    std::array<Value, Table::kMaxColumns> values{};
    std::array<Integer, Table::kMaxColumns> integers{};  // as values
    uint64_t is_integer = 0;                             // by cell
    int16_t rowid_cell = -1;                             // which has the rowid, if any
  };
  struct Record {
    const uint8_t* rowid = nullptr;  // a varint
    const Plan* plan = nullptr;
    const uint8_t* values = nullptr;
  };

  Status Load(size_t first_leaf, size_t count);
  // Reads pages of the part from this one on.
  Status ReadFrom(size_t index);
  Status EnterPage(size_t index);
  // Moves to the next page when the current one has no more rows; returns false at the part's end.
  Result<bool> HasRow();
  // The row at `cell_` of the current page. Errors: kCorrupt.
  Status FindRecord(Record& record);
  static int64_t RowidOf(const Record& record);
  // Whether the size of a record's header is in its first byte, and plans of such headers are kept.
  static bool IsShortHeader(size_t header_size, size_t size);
  size_t SlotOf(const uint8_t* header, size_t header_size) const;
  // Whether there is a plan for a record of `size` bytes at `p`.
  bool FindPlan(const uint8_t* p, size_t size, Record& record);
  // Makes a plan for the record.
  Status LearnPlan(const uint8_t* p, const uint8_t* end, Record& record);
  // Reads a header into `plan`.
  Status MakePlan(const uint8_t* p, const uint8_t* end, Plan& plan);
  static Plan::Value PlanOf(const Slot& slot, uint64_t type, uint64_t offset, uint64_t size);
  static void PlanInteger(Plan& plan, const Plan::Value& value);
  void Follow(const Record& record, Row& row);
  void FollowIntegers(const Record& record, size_t row);
  Status FollowOverflow(const uint8_t* local, size_t local_size, uint64_t payload_size);
  Error Corrupt(std::string_view what) const;

  const Table& table_;
  const Database& database_;
  static constexpr size_t kPlans = 256;

  std::vector<Slot> slots_;
  std::vector<Cell> cells_;  // of the columns asked for, and one that is always null
  IntegerBuffer integers_;
  std::array<std::unique_ptr<Plan>, kPlans> plans_;  // by a hash of the header
  Plan long_plan_;                                   // of a header too long for plans_
  const Plan* last_plan_ = &long_plan_;              // of plans_: that of the last row, once there was one
  std::vector<uint8_t> pages_;     // of the current part, those from read_begin_ to read_end_
  std::vector<uint8_t> overflow_;  // a payload that has overflow pages, put together
  std::vector<uint8_t> one_page_;
  size_t first_leaf_ = 0;
  size_t leaf_count_ = 0;
  size_t read_begin_ = 0;
  size_t read_end_ = 0;
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
  Result<bool> NextIntegers(IntegerRows& rows) override;
  Result<bool> Find(int64_t rowid, Row& row) override;

 private:
  StatementReader(const Table& table, std::unique_ptr<Connection> connection, Statement statement,
                  size_t columns)
      : table_(table),
        connection_(std::move(connection)),
        statement_(std::move(statement)),
        cells_(columns + 1),
        integers_(columns) {}
  void Bind(int64_t first, int64_t last);

  const Table& table_;
  std::unique_ptr<Connection> connection_;
  Statement statement_;
  std::vector<Cell> cells_;
  IntegerBuffer integers_;
};

}  // namespace gpusonde::importers::sqlite
