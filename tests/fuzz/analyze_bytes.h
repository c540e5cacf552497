// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "analyze/analyzer.h"
#include "memory_file.h"

// Everything that `gpusonde analyze` does with a file, of whatever bytes it is; once as it is, once with
// --partial. What it says must add up.
inline void AnalyzeBytes(const uint8_t* data, size_t size) {
  const gpusonde::Fd file = gpusonde::MemoryFile({data, size});
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  for (const bool partial : {false, true}) {
    const auto report =
        gpusonde::analyze::Analyze({path}, {.threads = 1, .partial = partial, .rank_from = {}});
    if (!report.has_value()) {
      if (report.error().message.empty()) std::abort();  // nobody could tell what is wrong
      continue;
    }
    for (const auto& rank : report->ranks)
      if (rank.busy_ns < 0 || rank.idle_ns < 0 || rank.busy_ns + rank.idle_ns != rank.span_ns) std::abort();
    if (ToJson(*report).empty() || ToText(*report).empty()) std::abort();
  }
}
