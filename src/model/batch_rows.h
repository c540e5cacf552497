// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "model/batch.h"
#include "model/table.h"

namespace gpusonde::model {

namespace internal {

template <class T>
void ReadValue(const ColumnData& column, size_t row, T& value) {
  if constexpr (IsOptional<T>::value) {
    if (column.valid.empty() || column.valid[row] != 0) ReadValue(column, row, value.emplace());
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(!std::is_enum_v<T>, "no way back from a name to its value");
  } else if constexpr (std::is_same_v<T, std::string>) {
    const uint32_t begin = row == 0 ? 0 : column.ends[row - 1];
    value.assign(reinterpret_cast<const char*>(column.values.data()) + begin, column.ends[row] - begin);
  } else if constexpr (std::is_same_v<T, std::vector<Id128>> || std::is_same_v<T, std::vector<int64_t>>) {
    using Element = typename T::value_type;
    const uint32_t begin = row == 0 ? 0 : column.ends[row - 1];
    value.resize(column.ends[row] - begin);
    if (!value.empty())
      std::memcpy(value.data(), column.values.data() + begin * sizeof(Element),
                  value.size() * sizeof(Element));
  } else if constexpr (std::is_same_v<T, bool>) {
    value = column.values[row] != std::byte{0};
  } else {
    std::memcpy(&value, column.values.data() + row * sizeof value, sizeof value);
  }
}

}  // namespace internal

// What BatchBuilder wrote, read back: the rows of a batch of this table, which must be valid (Validate). A
// column that the batch lacks leaves its member as the row struct begins. Enumerations aren't read.
template <class Table>
std::vector<typename Table::Row> RowsOf(const Table& table, const Batch& batch) {
  std::vector<typename Table::Row> rows(batch.rows);
  const auto columns = table.info().columns;
  std::vector<const ColumnData*> sources(columns.size(), nullptr);
  for (size_t i = 0; i < columns.size(); ++i) {
    const auto found = std::ranges::find(batch.columns, columns[i].name, &ColumnData::name);
    if (found != batch.columns.end() && found->type == columns[i].type) sources[i] = &*found;
  }
  for (size_t row = 0; row < rows.size(); ++row)
    table.ForEachValue(rows[row], [&](size_t column, auto& value) {
      if (sources[column] != nullptr) internal::ReadValue(*sources[column], row, value);
    });
  return rows;
}

}  // namespace gpusonde::model
