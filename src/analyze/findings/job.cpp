// SPDX-License-Identifier: Apache-2.0
#include "analyze/findings/job.h"

#include <utility>

namespace gpusonde::analyze {

void Renumber(RankResult& result, std::span<const uint32_t> ids) {
  for (Stratum& stratum : result.kernels.strata) stratum.name = ids[stratum.name];
  for (StreamSum& stream : result.kernels.streams) stream.name = ids[stream.name];
  for (Collective& collective : result.collectives) collective.name = ids[collective.name];
  for (SlowStep& slow : result.steps.slow)
    for (StepKernel& kernel : slow.kernels) kernel.name = ids[kernel.name];
  for (SyncRow& row : result.syncs.rows) row.name = ids[row.name];
  for (KernelSequence& sequence : result.sequences.sequences)
    for (uint32_t& name : sequence.names) name = ids[name];
  std::map<uint32_t, NameResult> names;
  for (auto& [name, found] : result.kernels.names) {
    const auto [place, is_new] = names.try_emplace(ids[name], std::move(found));
    if (!is_new) place->second.Merge(found);
  }
  result.kernels.names = std::move(names);
}

}  // namespace gpusonde::analyze
