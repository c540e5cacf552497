// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/report.h"

// What a report says of how threads launch work.
namespace gpusonde::analyze {

struct ThreadOfRank {
  int64_t rank = 0;
  const LaunchPatternLine::Thread* thread = nullptr;
};

// Those that launch most first; of equal ones in the order of ranks.
std::vector<ThreadOfRank> ThreadsByLaunches(const Report& report);

// Of the first of those, unless it launches little.
std::optional<std::string> LaunchPatternSentence(const Report& report);

// Of threads that the report doesn't tell apart.
int64_t LaunchesOfOthers(const Report& report);

// As in the JSON: "few", "steady", "bursts".
std::string_view PatternText(LaunchPatternLine::Thread::Pattern pattern);
// "–" if unknown.
std::string PerSecond(const LaunchPatternLine::Thread& thread);
std::string BurstSize(const LaunchPatternLine::Thread& thread);
// A quantile of so many gaps or pauses; "–" of none.
std::string GapText(int64_t count, int64_t gap_ns);

}  // namespace gpusonde::analyze
