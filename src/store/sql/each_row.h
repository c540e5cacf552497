// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/result.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

namespace gpusonde::store {

// Calls `take(rows)`, which returns a Status, at each row of a statement's answer. Errors: those of `ask`, of
// Rows::Next and of `take`.
template <class Take>
Status ForEachRowOf(const Ask& ask, const SqlPart& sql, const Take& take) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, ask(sql));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    TRY(take(*rows));
  }
}

template <class Take>
Status ForEachRowOf(Store& store, const SqlPart& sql, const Take& take) {
  return ForEachRowOf(Asking(store), sql, take);
}

inline std::optional<int64_t> OptionalInt64(const Rows& rows, size_t column) {
  return rows.IsNull(column) ? std::nullopt : std::optional(rows.Int64(column));
}

}  // namespace gpusonde::store
