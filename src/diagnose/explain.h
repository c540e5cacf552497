// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diagnose/diagnosis.h"

namespace gpusonde::diagnose {

// The cause of an incident of which nobody can say it.
inline constexpr std::string_view kAbstain = "abstain";

// Fills in what a report says in words and rows, from its ranked causes: cause, confidence and sentence of
// the incident, and its evidence. Abstains when more than 40 % of the excess is unexplained, or no cause is
// likely.
void Explain(const Situation& situation, Report& report);

}  // namespace gpusonde::diagnose
