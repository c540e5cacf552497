// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/selection.h"

namespace gpusonde::server {

// The query parameters of one request. A handler takes the ones it knows and then calls Finish, which refuses
// the rest, so that a misspelt parameter is never ignored. All errors are kInvalidArgument and name the
// parameter and its valid values.
class QueryParameters {
 public:
  // `pairs` must outlive it. Errors: a name given twice.
  static Result<QueryParameters> Create(const std::vector<std::pair<std::string, std::string>>& pairs);

  // The value; empty when absent.
  std::optional<std::string_view> TakeText(std::string_view name);
  // A decimal integer in [low, high], digits with at most a leading '-'.
  Result<std::optional<int64_t>> TakeInteger(std::string_view name, int64_t low, int64_t high);
  // A decimal number in [low, high], such as 2.5 or 1e3.
  Result<std::optional<double>> TakeNumber(std::string_view name, double low, double high);
  // The 32 hex digits of an id.
  Result<std::optional<Id128>> TakeId(std::string_view name);
  // Ids of processes with commas between them, each once; empty when absent.
  Result<std::vector<Id128>> TakeProcesses(std::string_view name);
  // 0 or 1; false when absent.
  Result<bool> TakeFlag(std::string_view name);

  // The parameters of the selection: only from_us and to_us, or all; see docs/api.md.
  Result<model::Selection> TakeTimeRange();
  Result<model::Selection> TakeSelection();
  // Those of a selection that is compared with `selection`: base_from_us and base_to_us, or else the same
  // time; base_process (ids, or "all"), or else the same processes; otherwise the same. A thread is only of
  // the same process.
  Result<model::Selection> TakeBase(const model::Selection& selection);

  Status Finish() const;

 private:
  Status TakeTimes(std::string_view from, std::string_view to, model::Selection& selection);

  struct Parameter {
    std::string_view name;
    std::string_view value;
    bool taken = false;
  };
  std::vector<Parameter> parameters_;
  std::string known_;  // names that were taken, for the error message
};

}  // namespace gpusonde::server
