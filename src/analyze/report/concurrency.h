// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
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

// The kinds of work that share time with another one, and for how long each two do; 0 on the diagonal.
struct KindMatrix {
  std::vector<ConcurrencyLine::KindTime> kinds;
  std::vector<std::vector<int64_t>> shared_ns;
};
KindMatrix KindMatrixOf(const ConcurrencyLine& line);

// As "streams 7 and 84", or "stream 7 and those beyond the first 64".
std::string PairText(const ConcurrencyLine::Pair& pair);

// Whether some of a rank's streams aren't told apart.
bool HasOthers(const ConcurrencyLine& line);

// How many a rank has, as "65"; "over 64" of those that aren't told apart.
std::string StreamCount(const ConcurrencyLine& line);

// As "7"; "(other)" for all beyond the first 64.
std::string StreamText(ConcurrencyLine::StreamNumber stream);

}  // namespace gpusonde::analyze
