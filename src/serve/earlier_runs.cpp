// SPDX-License-Identifier: Apache-2.0
#include "serve/earlier_runs.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/time_range.h"
#include "model/left_open.h"
#include "store/sql/time_range.h"
#include "store/table_rows.h"

namespace gpusonde::serve {
namespace {

constexpr std::string_view kOpenBefore = "WHERE end_ns IS NULL AND start_ns < ? ORDER BY start_ns";

}  // namespace

Status EndWhatEarlierRunsLeft(store::LiveStore& store, store::Day day, int64_t started_ns) {
  const std::vector<store::Parameter> before = {started_ns};
  ASSIGN_OR_RETURN(auto incidents, store::ReadTable(store, model::kIncidents, kOpenBefore, before));
  ASSIGN_OR_RETURN(auto warnings, store::ReadTable(store, model::kWarnings, kOpenBefore, before));
  if (incidents.empty() && warnings.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, store::ReadObserved(store));
  int64_t observed_ns = 0;
  for (const TimeRange& run : runs)
    if (run.from_ns < started_ns) observed_ns = std::max(observed_ns, std::min(run.to_ns, started_ns));
  model::BatchBuilder ended_incidents(model::kIncidents);
  for (model::Incident& incident : incidents) {
    model::EndLeftOpen(incident, observed_ns);
    ended_incidents.Append(incident);
  }
  model::BatchBuilder ended_warnings(model::kWarnings);
  for (model::Warning& warning : warnings) {
    model::EndLeftOpen(warning, observed_ns);
    ended_warnings.Append(warning);
  }
  const std::array<model::Batch, 2> batches = {ended_incidents.Take(), ended_warnings.Take()};
  return store.AppendTo(day, batches);
}

}  // namespace gpusonde::serve
