// SPDX-License-Identifier: Apache-2.0
#include "store/time_range.h"

#include <algorithm>
#include <limits>
#include <memory>

namespace gpusonde::store {
namespace {

constexpr const char* kRunsSql = R"(
  SELECT started_ns, ended_ns,
         lead(started_ns, 1, 9223372036854775807) OVER (PARTITION BY host ORDER BY started_ns) AS next_ns
  FROM sources ORDER BY started_ns)";

// The last sign of life in the range: a sample, or a commit of a spool; the range's begin when there is none.
Result<int64_t> LastSeen(Store& store, const TimeRange& range) {
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query("SELECT greatest(?, (SELECT max(time_ns) FROM samples WHERE time_ns >= ? AND time_ns < ?), "
                  "(SELECT max(committed_ns) FROM batches WHERE committed_ns >= ? AND committed_ns < ?))",
                  {{range.from_ns, range.from_ns, range.to_ns, range.from_ns, range.to_ns}}));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any ? rows->Int64(0) : range.from_ns;
}

// The same, soonest where it is late: few samples are newer than the windows.
Result<int64_t> LastSeenFromTheEnd(Store& store, const TimeRange& range) {
  if (const int64_t newest = store.windows_end_ns(); newest > range.from_ns && newest < range.to_ns) {
    ASSIGN_OR_RETURN(const int64_t last_ns, LastSeen(store, {newest, range.to_ns}));
    if (last_ns > newest) return last_ns;
  }
  return LastSeen(store, range);
}

}  // namespace

Result<std::vector<TimeRange>> ReadObserved(Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(kRunsSql));
  std::vector<TimeRange> observed;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return observed;
    TimeRange run{rows->Int64(0), rows->Int64(1)};
    if (rows->IsNull(1)) {
      ASSIGN_OR_RETURN(run.to_ns, LastSeenFromTheEnd(store, {run.from_ns, rows->Int64(2)}));
    }
    observed.push_back(run);
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
