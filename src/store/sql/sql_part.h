// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "store/each_row.h"
#include "store/store.h"

namespace gpusonde::store {

// A part of a statement, with the parameters of its question marks in order.
struct SqlPart {
  std::string text;
  std::vector<Parameter> parameters;

  SqlPart InBrackets() const { return {"(" + text + ")", parameters}; }

  SqlPart& operator+=(const SqlPart& more) {
    text += more.text;
    parameters.insert(parameters.end(), more.parameters.begin(), more.parameters.end());
    return *this;
  }
};

// Runs a query on a store, or on a connection of one.
using Ask = std::function<Result<std::unique_ptr<Rows>>(const SqlPart& sql)>;
inline Ask Asking(Store& store) {
  return [&store](const SqlPart& sql) { return store.Query(sql.text, sql.parameters); };
}

// Calls `visit` as in store/each_row.h at each row of a query's answer.
template <class Visit>
Status ForEachRow(const Ask& ask, const SqlPart& sql, const Visit& visit) {
  return ForEachRow(ask(sql), visit);
}
template <class Visit>
Status ForEachRow(Store& store, const SqlPart& sql, const Visit& visit) {
  return ForEachRow(store.Query(sql.text, sql.parameters), visit);
}

}  // namespace gpusonde::store
