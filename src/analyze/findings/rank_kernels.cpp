// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "analyze/findings/job.h"
#include "base/saturated.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxRankKernels = 10;

}  // namespace

std::vector<RankKernelsLine> SumKernelsByRank(const Job& job) {
  std::vector<RankKernelsLine> lines;
  for (const JobRank& rank : job.ranks) {
    std::map<std::string_view, Sum> sums;
    for (const StreamSum& stream : rank.result.kernels.streams)
      sums[job.names[stream.name]].Merge(stream.sum);
    if (sums.empty()) continue;
    std::vector<std::pair<std::string_view, Sum>> sorted(sums.begin(), sums.end());
    const size_t kept = std::min(sorted.size(), kMaxRankKernels);
    std::ranges::partial_sort(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(kept), {},
                              [](const auto& one) { return std::tuple(-one.second.total_ns, one.first); });
    RankKernelsLine& line = lines.emplace_back(RankKernelsLine{.rank = rank.number, .trace = rank.trace});
    for (size_t i = 0; i < sorted.size(); ++i) {
      const auto& [name, sum] = sorted[i];
      const int64_t total_ns = Saturated(sum.total_ns);
      if (i < kept)
        line.kernels.push_back({std::string(name), sum.count, total_ns});
      else
        line.others_ns = AddSaturated(line.others_ns, total_ns);
    }
  }
  return lines;
}

}  // namespace gpusonde::analyze
