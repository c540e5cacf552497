// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

std::optional<AdviceLine> AdviseStraggler(const Report& report) {
  const auto find = [&](const RankLine& rank) -> const CollectiveLine* {
    const auto found = std::ranges::find(report.collectives, rank.rank, &CollectiveLine::rank);
    return found != report.collectives.end() && found->straggler ? &*found : nullptr;
  };
  const auto loss = [&](const RankLine& rank) {
    const CollectiveLine* const line = find(rank);
    return line != nullptr ? line->delayed_ns : 0;
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kSlowness, loss);
  if (worst.rank == nullptr) return std::nullopt;
  const CollectiveLine& line = *find(*worst.rank);
  AdviceLine advice = AdviceFor(worst, "straggler");
  advice.finding = fmt::format("it came last in {} of {} collectives, and the others waited {} for it",
                               line.last, line.matched, Time(line.delayed_ns));
  advice.action =
      "Compare what it does before collectives with another rank: more work (uneven data or layers), a "
      "slower GPU, or a slower host.";
  advice.gain_basis = "how long it delayed the first rank whenever it came last";
  advice.names = CommunicationNames(report);
  return advice;
}

}  // namespace gpusonde::analyze
