// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/selection.h"
#include "model/tables/evidence.h"
#include "model/tables/incidents.h"
#include "model/tables/warnings.h"
#include "store/queries/incident_strips.h"
#include "store/queries/usual_steps.h"
#include "store/store.h"

// Queries of the UI about slow steps.
namespace gpusonde::store {

struct IncidentInfo {
  model::Incident incident;
  std::string process_name;
  int32_t pid = 0;
  std::vector<model::Evidence> evidence;
  std::vector<IncidentStrip> strips;
};

struct Incidents {
  std::vector<IncidentInfo> incidents;   // the newest first
  int64_t omitted = 0;                   // older ones beyond `most`
  int64_t steps = 0;                     // in the selection's time
  std::vector<UsualSteps> programs;      // with steps in the selection, truncated
  std::vector<model::Warning> warnings;  // in the selection's time range, the newest first, truncated
};

// Incidents that overlap the selection's time, of its process where it has one. `buckets` of each strip;
// 0: no strips. Errors: those of Store::Query.
Result<Incidents> ReadIncidents(Store& store, const model::Selection& selection, int buckets,
                                int64_t most = 100);

}  // namespace gpusonde::store
