// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/sql/time_range.h"
#include "store/store.h"

namespace gpusonde::store {

// Ends what lasted when gpusonde was killed or stopped, such as an incident: nobody saw how it went on.
class RunEnds {
 public:
  explicit RunEnds(std::vector<Run> runs) : runs_(std::move(runs)) {}
  // Errors: those of Store::Query.
  static Result<RunEnds> Read(Store& store);

  // The end of the run in which something was reported; empty while that run lasts, or if there is none. Of
  // several hosts, whose stores don't say which reported it, the last end.
  std::optional<int64_t> EndAfter(int64_t reported_ns) const;

 private:
  std::vector<Run> runs_;  // by start
};

}  // namespace gpusonde::store
