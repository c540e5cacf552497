// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "analyze/advice/rules.h"
#include "analyze/advice/thresholds.h"
#include "analyze/report/quantities.h"

namespace gpusonde::analyze {

// Kernels of a few waves of blocks, the last of which leaves most of the device idle.
std::optional<AdviceLine> AdviseTailEffect(const Report& report) {
  const auto find = [&](const RankLine& rank) {
    return std::ranges::find_if(report.waves, [&](const WavesLine& line) {
      return line.rank == rank.rank && line.trace == rank.trace;
    });
  };
  const auto loss = [&](const RankLine& rank) {
    const auto line = find(rank);
    return line != report.waves.end() ? std::min(line->lost_ns, rank.span_ns) : 0;
  };
  const WorstRank worst = FindWorstRank(report, thresholds::kLastWaves, loss);
  if (worst.rank == nullptr) return std::nullopt;
  const WavesLine& line = *find(*worst.rank);
  AdviceLine advice = AdviceFor(worst, "tail_effect");
  advice.finding = fmt::format(
      "the last wave of blocks leaves a part of the GPU without work, {} of {} of its kernels whose waves "
      "are known",
      Percent(line.lost_ns, line.known_ns), Time(line.known_ns));
  advice.action =
      "Change the blocks of these kernels so that their number is a multiple of what runs at a time, make "
      "blocks smaller or kernels persistent (stream-K), choose batch sizes that give whole waves, or run "
      "other work beside them.";
  advice.gain_basis =
      "the share of the last wave without blocks, if blocks take equally long; by the limits of a "
      "multiprocessor, registers and shared memory";
  for (size_t i = 0; i < std::min(line.kernels.size(), kMaxEvidence); ++i)
    advice.names.push_back(line.kernels[i].name);
  return advice;
}

}  // namespace gpusonde::analyze
