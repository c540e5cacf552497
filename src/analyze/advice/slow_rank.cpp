// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

std::optional<AdviceLine> AdviseSlowRank(const Report& report) {
  const auto find = [&](const RankLine& rank) {
    return std::ranges::find(report.slow_ranks, rank.rank, &SlowRankLine::rank);
  };
  const auto loss = [&](const RankLine& rank) {
    const auto line = find(rank);
    return line != report.slow_ranks.end() ? ExcessOf(rank.compute_ns, line->ratio) : 0;
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kSlowness, loss);
  if (worst.rank == nullptr) return std::nullopt;
  const SlowRankLine& line = *find(*worst.rank);
  AdviceLine advice = AdviceFor(worst, "slow_rank");
  advice.finding = fmt::format(
      "compared with the same kernels on other ranks, its kernels take {} (95 % interval: {} to {})",
      Longer(line.ratio), Longer(line.low), Longer(line.high));
  if (line.mostly.name.empty()) {
    advice.action =
        "Look at the clocks, the power limit and the temperature of its GPU (nvidia-smi -q -d "
        "CLOCK,PERFORMANCE), and for other programs on it: a trace of kernels doesn't have them.";
  } else {
    advice.finding += fmt::format("; {} of that are one kernel's, which takes {}",
                                  Time(line.mostly.excess_ns), Longer(line.mostly.ratio));
    advice.action =
        "See what this kernel works on there (more data, longer sequences, uneven experts): a slow GPU would "
        "slow down the others too.";
    advice.names = {line.mostly.name};
  }
  advice.gain_basis = "its computation at the ratio of 1";
  return advice;
}

}  // namespace gpusonde::analyze
