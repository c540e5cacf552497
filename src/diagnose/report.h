// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/cause.h"
#include "model/tables/evidence.h"
#include "model/tables/incidents.h"

namespace gpusonde::diagnose {

// The current state of an incident: its rows, and the ranked causes that they are made from.
struct Report {
  model::Incident incident;
  std::vector<Candidate> causes;  // ranked, the most likely one first
  std::vector<model::Evidence> evidence;
  std::string process_name;
  int32_t pid = 0;
  std::string anchor;
  bool is_notable = false;  // has had a likely cause once, was large, or lasted; others aren't reported
};

}  // namespace gpusonde::diagnose
