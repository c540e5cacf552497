// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diagnose/diagnosis.h"

namespace gpusonde::diagnose {

// The cause of an incident that no known cause explains.
inline constexpr std::string_view kAbstain = "abstain";

// Fills in the incident's cause, confidence and sentence, and its evidence, from the report's ranked causes.
// Abstains if more than 40 % of the excess is unexplained, or no cause is likely.
void Explain(const Situation& situation, Report& report);

}  // namespace gpusonde::diagnose
