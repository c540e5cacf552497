// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <random>

#include "model/batch.h"
#include "model/table.h"

// For tests: rows that no declared struct is needed for.
namespace gpusonde::model {

// `rows` random rows of the table, nulls and empty lists among them. Text is ASCII; keys hardly ever repeat.
inline Batch RandomBatch(const TableInfo& table, size_t rows, std::mt19937_64& random) {
  Batch batch = EmptyBatch(table);
  batch.rows = rows;
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    ColumnData& column = batch.columns[i];
    const bool is_list = column.type == ColumnType::kIdList || column.type == ColumnType::kInt64List;
    const size_t width = std::max<size_t>(WidthOf(column.type), 1);
    // A key that is empty would repeat.
    const size_t min_text = static_cast<int>(i) < table.key_columns ? 16 : 0;
    for (size_t row = 0; row < rows; ++row) {
      const size_t elements = is_list                            ? random() % 5
                              : column.type == ColumnType::kText ? min_text + random() % 40
                                                                 : 1;
      for (size_t at = 0; at < elements * width; at += sizeof(uint64_t)) {
        uint64_t bits = random();
        if (column.type == ColumnType::kBool) bits &= 1;
        if (column.type == ColumnType::kText) bits = (bits & 0x1F1F1F1F1F1F1F1F) + 0x4040404040404040;
        // Finite: whole and not too large.
        const auto number = static_cast<double>(bits >> 12);
        if (column.type == ColumnType::kFloat64) std::memcpy(&bits, &number, sizeof bits);
        std::byte bytes[sizeof bits];
        std::memcpy(bytes, &bits, sizeof bits);
        column.values.insert(column.values.end(), bytes,
                             bytes + std::min(sizeof bits, elements * width - at));
      }
      if (is_list || column.type == ColumnType::kText)
        column.ends.push_back(static_cast<uint32_t>(column.values.size() / width));
      if (table.columns[i].nullable) column.valid.push_back(random() % 4 == 0 ? 0 : 1);
    }
  }
  return batch;
}

inline bool operator==(const ColumnData& a, const ColumnData& b) {
  return a.name == b.name && a.type == b.type && a.values == b.values && a.ends == b.ends &&
         a.valid == b.valid;
}

// For EXPECT_EQ in tests; Batch has no operator==.
inline bool SameBatch(const Batch& a, const Batch& b) {
  return a.table == b.table && a.rows == b.rows &&
         std::ranges::equal(a.columns, b.columns,
                            [](const ColumnData& x, const ColumnData& y) { return x == y; });
}

}  // namespace gpusonde::model
