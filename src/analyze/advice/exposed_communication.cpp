// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

// Communication while no kernel computes. The time in which a rank waits in collectives for others is left
// out: that is the straggler's matter, and overlap doesn't shorten it.
std::optional<AdviceLine> AdviseExposedCommunication(const Report& report) {
  const auto loss = [&](const RankLine& rank) {
    int64_t waited_ns = 0;
    for (const CollectiveLine& line : report.collectives)
      if (line.rank == rank.rank) waited_ns = std::max(waited_ns, line.waited_ns);
    return rank.exposed_comm_ns - waited_ns;
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kExposedCommunication, loss);
  if (worst.rank == nullptr) return std::nullopt;
  AdviceLine advice = AdviceFor(worst, "exposed_communication");
  const int64_t waited_ns = worst.rank->exposed_comm_ns - worst.loss_ns;
  advice.finding = fmt::format("{} of {} of communication had no concurrent computation",
                               Time(worst.rank->exposed_comm_ns), Time(worst.rank->comm_ns));
  if (waited_ns > 0) advice.finding += fmt::format("; {} of it was waiting for other ranks", Time(waited_ns));
  advice.action =
      "Overlap it with computation (buckets of gradients that are reduced during the backward pass, "
      "prefetched parameters), or send less.";
  advice.gain_basis = "the communication without concurrent computation, less the waits for other ranks";
  advice.names = CommunicationNames(report);
  return advice;
}

}  // namespace gpusonde::analyze
