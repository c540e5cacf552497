// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "store/queries/incident_query.h"

namespace gpusonde::server {

// The body of /api/v1/incidents, as docs/api.md describes it.
std::string IncidentsJson(const store::Incidents& incidents);

}  // namespace gpusonde::server
