// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "diagnose/cause.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// Judges each cause by the share of the excess that it explains, the signals that it expects to change, and
// the causes that supersede it. Returns all causes that are possible, the most likely one first.
std::vector<Candidate> Rank(const Situation& situation);

}  // namespace gpusonde::diagnose
