// SPDX-License-Identifier: Apache-2.0
#include "store/queries/run_ends.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace gpusonde::store {

Result<RunEnds> RunEnds::Read(Store& store) {
  ASSIGN_OR_RETURN(std::vector<Run> runs, ReadAllRuns(store));
  return RunEnds(std::move(runs));
}

std::optional<int64_t> RunEnds::EndAfter(int64_t reported_ns) const {
  std::map<std::string_view, const Run*> of_host;
  for (const Run& run : runs_)
    if (run.time.from_ns <= reported_ns) of_host[run.host] = &run;
  std::optional<int64_t> end_ns;
  for (const auto& [host, run] : of_host) {
    if (!run->is_over) return std::nullopt;
    // The last sign of life may be older than what the run reported.
    end_ns = std::max({end_ns.value_or(reported_ns), run->time.to_ns, reported_ns});
  }
  return end_ns;
}

}  // namespace gpusonde::store
