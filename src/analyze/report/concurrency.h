// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyze/report.h"

// What a report says of work at the same time.
namespace gpusonde::analyze {

// Ranks of several streams, those that have most time with several events first; of equal ones in the order
// of ranks.
std::vector<const ConcurrencyLine*> RanksByConcurrency(const Report& report);

// Of the first of those, if it is a hundredth of its busy time.
std::optional<std::string> ConcurrencySentence(const Report& report);

// As "7"; "(other)" for all beyond the first 64.
std::string StreamText(ConcurrencyLine::StreamNumber stream);

}  // namespace gpusonde::analyze
