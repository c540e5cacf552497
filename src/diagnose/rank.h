// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "diagnose/cause.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// Judges each cause by the share of the excess that it explains, the signals that it expects to change, and
// the causes that supersede it. Returns all causes that are possible, the most likely one first.
std::vector<Candidate> Rank(const Situation& situation);

// Moves the cause that was named so far back to the front if it may still be named and another one is hardly
// more likely, so that two causes at once don't take turns.
void KeepFirst(CauseId named, std::vector<Candidate>& ranked);

}  // namespace gpusonde::diagnose
