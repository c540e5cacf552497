// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/tables/incidents.h"
#include "model/tables/warnings.h"

// The ends of what a run left open because it was killed: when the run was last observed (ns since the
// epoch), but not before what is known to belong to it.
namespace gpusonde::model {

inline void EndLeftOpen(Incident& incident, int64_t observed_ns) {
  incident.end_ns = std::max({observed_ns, incident.start_ns, incident.seen_ns.value_or(0)});
}

inline void EndLeftOpen(Warning& warning, int64_t observed_ns) {
  warning.end_ns = std::max(observed_ns, warning.start_ns);
}

}  // namespace gpusonde::model
