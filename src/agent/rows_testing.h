// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"

// Helpers for tests that inspect batches.
namespace gpusonde::agent {

inline const model::ColumnData* FindColumn(const std::vector<model::Batch>& batches, std::string_view table,
                                           std::string_view column) {
  for (const model::Batch& batch : batches)
    if (batch.table == table)
      for (const model::ColumnData& data : batch.columns)
        if (data.name == column) return &data;
  return nullptr;
}

// The values of a text column; empty if the table has no rows.
inline std::vector<std::string> TextColumn(const std::vector<model::Batch>& batches, std::string_view table,
                                           std::string_view column) {
  std::vector<std::string> values;
  const model::ColumnData* data = FindColumn(batches, table, column);
  if (data == nullptr) return values;
  size_t begin = 0;
  for (const uint32_t end : data->ends) {
    values.emplace_back(reinterpret_cast<const char*>(data->values.data()) + begin, end - begin);
    begin = end;
  }
  return values;
}

// The values of a fixed-width column.
template <class T>
std::vector<T> FixedColumn(const std::vector<model::Batch>& batches, std::string_view table,
                           std::string_view column) {
  const model::ColumnData* data = FindColumn(batches, table, column);
  if (data == nullptr || data->values.empty()) return {};
  std::vector<T> values(data->values.size() / sizeof(T));
  std::memcpy(values.data(), data->values.data(), data->values.size());
  return values;
}

}  // namespace gpusonde::agent
