// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "analyze/analyzer.h"

// Does everything that `gpusonde analyze` does with a file, with and without --partial. Its sums must be
// consistent.
inline void AnalyzeFile(const std::string& path) {
  for (const bool partial : {false, true}) {
    const auto report =
        gpusonde::analyze::Analyze({path}, {.threads = 1, .partial = partial, .rank_from = {}});
    if (!report.has_value()) {
      if (report.error().message.empty()) std::abort();  // an error needs a message
      continue;
    }
    for (const auto& rank : report->ranks)
      if (rank.busy_ns < 0 || rank.idle_ns < 0 || rank.busy_ns + rank.idle_ns != rank.span_ns) std::abort();
    if (ToJson(*report).empty() || ToText(*report).empty()) std::abort();
  }
}
