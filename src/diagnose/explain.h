// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/cause.h"
#include "diagnose/situation.h"
#include "model/tables/evidence.h"

namespace gpusonde::diagnose {

// Stored as the cause of an incident that no known cause explains.
inline constexpr std::string_view kAbstain = "abstain";

// What is reported of an incident.
struct Explanation {
  std::optional<CauseId> cause;  // nullopt: abstains
  double confidence = 0;         // of the cause, or of having to abstain; in [0, 1]
  std::string sentence;
  std::vector<model::Evidence> evidence;  // without the incident's id
};

// Explains an incident that began at `start_ns` (since the epoch) from its ranked causes. Abstains if more
// than 40 % of the excess is unexplained, or no cause is likely.
Explanation Explain(const Situation& situation, std::span<const Candidate> causes, int64_t start_ns);

}  // namespace gpusonde::diagnose
