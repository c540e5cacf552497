// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/result.h"
#include "model/table.h"
#include "store/each_row.h"
#include "store/store.h"

namespace gpusonde::store {

namespace internal {

template <class T>
void ReadValue(const Rows& rows, size_t column, T& value) {
  if constexpr (model::internal::IsOptional<T>::value) {
    if (!rows.IsNull(column)) ReadValue(rows, column, value.emplace());
  } else if constexpr (std::is_same_v<T, bool>) {
    value = rows.Int64(column) != 0;
  } else if constexpr (std::is_same_v<T, int32_t>) {
    value = static_cast<int32_t>(rows.Int64(column));
  } else if constexpr (std::is_same_v<T, int64_t>) {
    value = rows.Int64(column);
  } else if constexpr (std::is_same_v<T, double>) {
    value = rows.Float64(column);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = rows.Text(column);
  } else if constexpr (std::is_same_v<T, Id128>) {
    value = rows.Id(column);
  } else if constexpr (std::is_same_v<T, std::vector<Id128>>) {
    value = rows.IdList(column);
  } else {
    static_assert(std::is_same_v<T, std::vector<int64_t>>, "no way back from this column's type");
    value = rows.Int64List(column);
  }
}

}  // namespace internal

// Reads rows of a declared table into its struct, one after another, and passes each to `visit`, a function
// of Row& that returns nothing or a Status. `rest` is SQL that follows FROM TABLE ("WHERE start_ns >= ? ORDER
// BY start_ns"), with its parameters; `schema` is a prefix of the table's name: "raw." before kernels omits
// those in packs. Errors: those of Store::Query and of `visit`.
template <class Table, class Visit>
Status ForEachRow(Store& store, const Table& table, std::string_view rest,
                  std::span<const Parameter> parameters, const Visit& visit, std::string_view schema = "") {
  std::string columns;
  for (const model::ColumnInfo& column : table.info().columns)
    columns += fmt::format("{}\"{}\"", columns.empty() ? "" : ", ", column.name);
  return ForEachRow(
      store.Query(fmt::format("SELECT {} FROM {}{} {}", columns, schema, table.name(), rest), parameters),
      [&](const Rows& read) {
        typename Table::Row row;
        table.ForEachValue(row,
                           [&](size_t column, auto& value) { internal::ReadValue(read, column, value); });
        return visit(row);
      });
}

// All of these rows at once.
template <class Table>
Result<std::vector<typename Table::Row>> ReadTable(Store& store, const Table& table,
                                                   std::string_view rest = "",
                                                   std::span<const Parameter> parameters = {},
                                                   std::string_view schema = "") {
  std::vector<typename Table::Row> read;
  TRY(ForEachRow(
      store, table, rest, parameters, [&](typename Table::Row& row) { read.push_back(std::move(row)); },
      schema));
  return read;
}

}  // namespace gpusonde::store
