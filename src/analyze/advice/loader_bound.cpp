// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Idle time of a device while the host was in a range that is named after a data loader.
std::optional<AdviceLine> AdviseLoaderBound(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kLoaderBound,
                                        [](const RankLine& rank) { return rank.loader.idle_ns; });
  if (worst.rank == nullptr) return std::nullopt;
  const LoaderLine& loader = worst.rank->loader;
  AdviceLine advice = AdviceFor(worst, "loader_bound");
  advice.finding =
      fmt::format("the GPU was idle for {} while the host waited for its data loader ({} of {} together)",
                  Time(loader.idle_ns), Counted(loader.count, "wait"), Time(loader.total_ns));
  advice.action =
      "Give the loader more workers, let it prefetch, or make preparing a batch cheaper (decode and augment "
      "once, or on the GPU).";
  advice.gain_basis = "the idle time within these waits, if batches were always ready";
  for (size_t i = 0; i < std::min(loader.longest.size(), kMaxEvidence); ++i)
    advice.places.push_back(PlaceAt(*worst.rank, loader.longest[i].begin_ns, loader.longest[i].end_ns));
  return advice;
}

}  // namespace gpusonde::analyze
