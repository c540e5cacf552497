// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {

std::vector<SequencesLine> ListSequences(const Job& job) {
  std::vector<SequencesLine> lines;
  for (const JobRank& rank : job.ranks) {
    const RankSequences& found = rank.result.sequences;
    if (found.sequences.empty()) continue;
    SequencesLine& line = lines.emplace_back(SequencesLine{.rank = rank.number, .trace = rank.trace});
    for (const KernelSequence& sequence : found.sequences) {
      SequencesLine::Sequence& one =
          line.sequences.emplace_back(SequencesLine::Sequence{.kernels = {},
                                                              .count = sequence.count,
                                                              .kernel_ns = sequence.kernel_ns,
                                                              .gap_ns = sequence.gap_ns,
                                                              .first_ns = sequence.first_ns});
      for (const uint32_t name : sequence.names) one.kernels.emplace_back(job.names[name]);
    }
  }
  return lines;
}

}  // namespace gpusonde::analyze
