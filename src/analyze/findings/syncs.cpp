// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxSyncLines = 20;

SyncsLine::Sum SyncLineOf(const SyncSum& sum) { return {sum.count, sum.total_ns, sum.busy_ns}; }

// The largest, of equal ones those with the smallest keys.
template <class Key>
std::vector<std::pair<Key, SyncSum>> LargestSyncs(const std::map<Key, SyncSum>& sums) {
  std::vector<std::pair<Key, SyncSum>> sorted(sums.begin(), sums.end());
  std::ranges::sort(sorted, {}, [](const auto& one) { return std::tuple(-one.second.total_ns, one.first); });
  sorted.resize(std::min(sorted.size(), kMaxSyncLines));
  return sorted;
}

// The step that waits as long as half of the others at most.
SyncsLine::Sum MedianStep(std::vector<SyncSum> steps) {
  const auto middle = steps.begin() + static_cast<ptrdiff_t>((steps.size() - 1) / 2);
  std::ranges::nth_element(steps, middle, {}, [](const SyncSum& step) {
    return std::tuple(step.total_ns, step.busy_ns, step.count);
  });
  return SyncLineOf(*middle);
}

}  // namespace

std::vector<SyncsLine> SumSyncs(const Job& job) {
  std::vector<SyncsLine> lines;
  for (const JobRank& rank : job.ranks) {
    const RankSyncs& syncs = rank.result.syncs;
    SyncSum all = syncs.others;
    std::map<std::string_view, SyncSum> calls;
    std::map<int64_t, SyncSum> threads;
    for (const SyncRow& row : syncs.rows) {
      all.Merge(row.sum);
      calls[job.names[row.name]].Merge(row.sum);
      threads[row.thread].Merge(row.sum);
    }
    if (all.count == 0) continue;
    SyncsLine line{.rank = rank.number, .trace = rank.trace, .all = SyncLineOf(all)};
    for (const auto& [name, sum] : LargestSyncs(calls))
      line.calls.push_back({std::string(name), SyncLineOf(sum)});
    for (const auto& [thread, sum] : LargestSyncs(threads)) line.threads.push_back({thread, SyncLineOf(sum)});
    if (!syncs.steps.empty()) line.typical_step = MedianStep(syncs.steps);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusonde::analyze
