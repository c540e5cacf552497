// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Long gaps in which the host launched nothing. What it did instead the report doesn't know.
std::optional<AdviceLine> AdviseHostStalls(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kHostStalls,
                                        [](const RankLine& rank) { return rank.host_gaps.long_ns; });
  if (worst.rank == nullptr) return std::nullopt;
  const HostGapsLine& gaps = worst.rank->host_gaps;
  AdviceLine advice = AdviceFor(worst, "host_stalls");
  advice.finding = fmt::format("the GPU was idle for {} in {} of 1 ms or more, as the host launched nothing",
                               Time(gaps.long_ns), Counted(gaps.long_count, "gap"));
  advice.action =
      "See what the host did at these times. Waiting for a data loader (more workers, prefetching), reading "
      "results back, logging, checkpoints and compilation are usual; of these the report knows only "
      "PyTorch's data loader (loader_bound).";
  advice.gain_basis = "the idle time in these gaps, if the host's work ran beside the GPU's";
  for (size_t i = 0; i < std::min(gaps.longest.size(), kMaxEvidence); ++i)
    advice.places.push_back(PlaceAt(*worst.rank, gaps.longest[i].begin_ns, gaps.longest[i].end_ns));
  return advice;
}

}  // namespace gpusonde::analyze
