// SPDX-License-Identifier: Apache-2.0
#include "model/batch.h"

#include <fmt/format.h>

namespace gpusonde::model {

size_t WidthOf(ColumnType type) {
  switch (type) {
    case ColumnType::kBool:
      return 1;
    case ColumnType::kInt32:
      return 4;
    case ColumnType::kInt64:
    case ColumnType::kFloat64:
    case ColumnType::kInt64List:
      return 8;
    case ColumnType::kId128:
    case ColumnType::kIdList:
      return 16;
    case ColumnType::kText:
      return 0;
  }
  return 0;
}

Batch EmptyBatch(const TableInfo& table) {
  Batch batch;
  batch.table = table.name;
  batch.columns.reserve(table.columns.size());
  for (const ColumnInfo& column : table.columns) {
    ColumnData& data = batch.columns.emplace_back();
    data.name = column.name;
    data.type = column.type;
  }
  return batch;
}

Status Validate(const Batch& batch) {
  for (const ColumnData& column : batch.columns) {
    const auto corrupt = [&](std::string_view what) {
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("batch of {}: column {}: {}", batch.table, column.name, what));
    };
    if (!column.valid.empty() && column.valid.size() != batch.rows)
      return corrupt("validity of another length");
    const size_t width = WidthOf(column.type);
    const bool has_ends = column.type == ColumnType::kText || column.type == ColumnType::kIdList ||
                          column.type == ColumnType::kInt64List;
    if (!has_ends) {
      if (column.values.size() != batch.rows * width) return corrupt("values of another length");
      continue;
    }
    if (column.ends.size() != batch.rows) return corrupt("row ends of another length");
    uint32_t previous = 0;
    for (const uint32_t end : column.ends) {
      if (end < previous) return corrupt("row ends fall");
      previous = end;
    }
    if (column.values.size() != size_t{previous} * (width == 0 ? 1 : width))
      return corrupt("values of another length");
  }
  return {};
}

}  // namespace gpusonde::model
