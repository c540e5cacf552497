// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/id128.h"
#include "base/result.h"
#include "store/store.h"

namespace gpusonde::store {

// Calls `visit(row)`, which returns nothing or a Status, at each row that is left of an answer. Errors: those
// of Rows::Next and of `visit`, after which no further row is read.
template <class Visit>
Status ForEachRow(Rows& rows, const Visit& visit) {
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows.Next());
    if (!more) return {};
    if constexpr (std::is_void_v<std::invoke_result_t<const Visit&, const Rows&>>)
      visit(std::as_const(rows));
    else
      TRY(visit(std::as_const(rows)));
  }
}

// The same of a query's answer, as Store::Query returns it. Errors: that of the query too.
template <class Visit>
Status ForEachRow(const Result<std::unique_ptr<Rows>>& answer, const Visit& visit) {
  if (!answer.has_value()) return Fail(answer.error());
  return ForEachRow(**answer, visit);
}

// A value of the current row; nothing where it is null.
inline std::optional<int64_t> OptionalInt64(const Rows& row, size_t column) {
  return row.IsNull(column) ? std::nullopt : std::optional(row.Int64(column));
}
inline std::optional<double> OptionalFloat64(const Rows& row, size_t column) {
  return row.IsNull(column) ? std::nullopt : std::optional(row.Float64(column));
}
inline std::optional<Id128> OptionalId(const Rows& row, size_t column) {
  return row.IsNull(column) ? std::nullopt : std::optional(row.Id(column));
}

}  // namespace gpusonde::store
