// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/table.h"

namespace gpusonde::model {

// One column of a batch: contiguous memory that is copied into DuckDB's vectors unchanged.
struct ColumnData {
  std::string name;
  ColumnType type = ColumnType::kInt64;

  // Fixed-width types: rows × width bytes, host order (bool 1, int32 4, int64 8, float64 8, id128 16 as
  // Id128). Text: all bytes, one after the other. Lists: all elements.
  std::vector<std::byte> values;

  // Text and lists only: where each row ends in `values`, in bytes (text) or elements (lists).
  std::vector<uint32_t> ends;

  // 1 where the row has a value; empty when every row has one.
  std::vector<uint8_t> valid;
};

// Rows of one table, by column: the unit of data from the sources through the spool to the store.
struct Batch {
  std::string table;
  size_t rows = 0;
  std::vector<ColumnData> columns;
};

// Bytes of one value of a fixed-width type, or of one list element; 0 for text.
size_t WidthOf(ColumnType type);

// A batch without rows that has the table's columns.
Batch EmptyBatch(const TableInfo& table);

// Checks the consistency of an untrusted batch: sizes match the row count, ends never decrease, lists and
// text stay inside their values. Errors: kCorrupt with table and column.
Status Validate(const Batch& batch);

// Builds a batch row by row from a declared table. Not thread-safe.
template <class Table>
class BatchBuilder {
 public:
  explicit BatchBuilder(const Table& table) : table_(&table), batch_(EmptyBatch(table.info())) {}

  void Append(const typename Table::Row& row) {
    table_->ForEachValue(row,
                         [this](size_t column, const auto& value) { Put(batch_.columns[column], value); });
    ++batch_.rows;
  }

  size_t rows() const { return batch_.rows; }

  // Moves out the rows so far; the builder is empty afterwards.
  Batch Take() {
    Batch taken = std::move(batch_);
    batch_ = EmptyBatch(table_->info());
    return taken;
  }

 private:
  template <class T>
  void Put(ColumnData& column, const std::optional<T>& value) {
    PutValue(column, value.value_or(T{}));
    if (value.has_value() && column.valid.empty()) return;
    column.valid.resize(batch_.rows, 1);
    column.valid.push_back(value.has_value() ? 1 : 0);
  }
  template <class T>
  void Put(ColumnData& column, const T& value) {
    PutValue(column, value);
  }

  template <class T>
  void PutValue(ColumnData& column, const T& value) {
    if constexpr (std::is_enum_v<T>) {
      PutText(column, EnumNames<T>::Name(value));
    } else if constexpr (std::is_same_v<T, std::string>) {
      PutText(column, value);
    } else if constexpr (internal::TypeOf<T>() == ColumnType::kIdList ||
                         internal::TypeOf<T>() == ColumnType::kInt64List) {
      PutBytes(column, value.data(), value.size() * sizeof *value.data());
      column.ends.push_back(static_cast<uint32_t>(column.values.size() / WidthOf(column.type)));
    } else {
      PutBytes(column, &value, sizeof value);
    }
  }
  static void PutText(ColumnData& column, std::string_view text) {
    PutBytes(column, text.data(), text.size());
    column.ends.push_back(static_cast<uint32_t>(column.values.size()));
  }
  static void PutBytes(ColumnData& column, const void* data, size_t size) {
    const auto* bytes = static_cast<const std::byte*>(data);
    column.values.insert(column.values.end(), bytes, bytes + size);
  }

  const Table* table_;
  Batch batch_;
};

}  // namespace gpusonde::model
