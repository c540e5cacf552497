// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "diagnose/situation.h"

namespace gpusonde::diagnose {

// Returns a situation as one line of JSON, without the newline. Rank and Explain say the same of what
// ReadSituation makes of it, so that verdicts can be replayed without the recording.
std::string WriteSituation(const Situation& situation);

// Reads what WriteSituation wrote. Errors: kCorrupt, naming the field that is missing or of another type.
Result<Situation> ReadSituation(std::string_view line);

}  // namespace gpusonde::diagnose
