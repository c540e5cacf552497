// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "analyze/stats/inference.h"

namespace gpusonde::analyze {
namespace {

// Name and launch shape.
using Alike = std::pair<uint32_t, uint32_t>;

bool IsCompared(const Job& job, const Stratum& stratum) { return !IsCommunication(job, stratum.name); }

std::map<Alike, LogMoments> AllRanks(const Job& job) {
  std::map<Alike, LogMoments> all;
  for (const JobRank& rank : job.ranks)
    for (const Stratum& stratum : rank.result.kernels.strata)
      if (IsCompared(job, stratum)) all[{stratum.name, stratum.shape}].Merge(stratum.logs);
  return all;
}

}  // namespace

std::vector<SlowRankLine> FindSlowRanks(const Job& job) {
  if (job.ranks.size() < 2) return {};
  const std::map<Alike, LogMoments> all = AllRanks(job);
  std::vector<SlowRankLine> lines;
  std::vector<double> p;
  for (const JobRank& rank : job.ranks) {
    PooledRatio pooled;
    for (const Stratum& stratum : rank.result.kernels.strata) {
      if (!IsCompared(job, stratum)) continue;
      LogMoments others = all.at({stratum.name, stratum.shape});
      others.Remove(stratum.logs);
      pooled.Add(stratum.logs, others);
    }
    const Ratio ratio = pooled.Finish();
    p.push_back(ratio.p);
    lines.push_back({.rank = rank.number,
                     .kernels = ratio.count,
                     .ratio = ratio.ratio,
                     .low = ratio.low,
                     .high = ratio.high});
  }
  const std::vector<bool> significant = Significant(p);
  std::vector<SlowRankLine> slow;
  for (size_t i = 0; i < lines.size(); ++i)
    if (significant[i] && lines[i].ratio >= kMinRatio) slow.push_back(lines[i]);
  return slow;
}

}  // namespace gpusonde::analyze
