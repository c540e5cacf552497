// SPDX-License-Identifier: Apache-2.0
#include "store/time_range.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace gpusonde::store {
namespace {

constexpr const char* kObservedSql = R"(
  WITH runs AS (
    SELECT started_ns, ended_ns,
           lead(started_ns, 1, 9223372036854775807) OVER (PARTITION BY host ORDER BY started_ns) AS next_ns
    FROM sources
  )
  SELECT started_ns,
         CASE WHEN ended_ns IS NOT NULL THEN ended_ns ELSE greatest(started_ns,
           (SELECT max(time_ns) FROM samples WHERE time_ns >= started_ns AND time_ns < next_ns),
           (SELECT max(committed_ns) FROM batches WHERE committed_ns >= started_ns AND committed_ns < next_ns)) END
  FROM runs ORDER BY started_ns)";

}  // namespace

Result<std::vector<TimeRange>> ReadObserved(Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(kObservedSql));
  std::vector<TimeRange> observed;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return observed;
    observed.push_back({rows->Int64(0), rows->Int64(1)});
  }
}

Result<TimeRange> ReadTimeRange(Store& store, const model::Selection& selection) {
  constexpr int64_t kOpenBegin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();
  TimeRange range{selection.from_ns, selection.to_ns};
  if (range.from_ns != kOpenBegin && range.to_ns != kOpenEnd) return range;
  ASSIGN_OR_RETURN(std::vector<TimeRange> observed, ReadObserved(store));
  if (observed.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                     store.Query("SELECT coalesce(min(time_ns), 0), coalesce(max(time_ns), 0) FROM samples"));
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    observed.push_back(any ? TimeRange{rows->Int64(0), rows->Int64(1)} : TimeRange{});
  }
  if (range.from_ns == kOpenBegin) range.from_ns = observed.front().from_ns;
  if (range.to_ns == kOpenEnd) range.to_ns = std::ranges::max(observed, {}, &TimeRange::to_ns).to_ns;
  return range;
}

}  // namespace gpusonde::store
