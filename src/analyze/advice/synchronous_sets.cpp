// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"
#include "base/counted.h"

namespace gpusonde::analyze {

// Sets of memory that the host can access block it, so that it launches nothing meanwhile.
std::optional<AdviceLine> AdviseSynchronousSets(const Report& report) {
  const WorstRank worst = FindWorstRank(report, thresholds::kSynchronousSets, [](const RankLine& rank) {
    const int64_t waited_ns = rank.idle.host_ns + rank.transfer_ns - rank.transfer_overlap_ns;
    return std::min(rank.blocking_sets.call_ns, waited_ns);
  });
  if (worst.rank == nullptr) return std::nullopt;
  AdviceLine advice = AdviceFor(worst, "synchronous_sets");
  const BlockingSetsLine& sets = worst.rank->blocking_sets;
  advice.finding =
      fmt::format("{} of pinned or managed memory blocked the host for {}; the GPU took {} for them",
                  Counted(sets.count, "set"), Time(sets.call_ns), Time(sets.set_ns));
  advice.action =
      "Set such memory asynchronously (cudaMemsetAsync) and wait only where the result is used, or set "
      "memory of the device.";
  advice.gain_basis =
      "the time of these calls, up to that in which the GPU only copied, set or waited for the host";
  return advice;
}

}  // namespace gpusonde::analyze
