// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "analyze/findings/job.h"
#include "analyze/lines.h"

namespace gpusonde::analyze {
namespace {

constexpr size_t kMaxLines = 100;

using Groups = std::map<uint64_t, Sum>;

// The groupings of one name's kernels.
struct Grouped {
  Groups by_rank, by_stream, by_shape;
  double between_windows = 0;
  int64_t windows = 0;
  double excess_ns = 0;
};

// How much longer kernels took than as many of typical (geometric mean) duration.
double ExcessOf(const Stratum& stratum) {
  const double typical_ns = std::exp2(stratum.logs.Mean() / kLogUnits);
  return std::max(
      0.0, static_cast<double>(stratum.sum.total_ns) - typical_ns * static_cast<double>(stratum.sum.count));
}

std::map<uint32_t, Grouped> Group(const Job& job) {
  std::map<uint32_t, Grouped> names;
  for (size_t i = 0; i < job.ranks.size(); ++i) {
    const KernelResult& kernels = job.ranks[i].result.kernels;
    for (const Stratum& stratum : kernels.strata) {
      Grouped& grouped = names[stratum.name];
      grouped.by_rank[i].Merge(stratum.sum);
      grouped.by_shape[stratum.shape].Merge(stratum.sum);
      grouped.excess_ns += ExcessOf(stratum);
    }
    for (const StreamSum& stream : kernels.streams)
      names[stream.name].by_stream[stream.stream].Merge(stream.sum);
    for (const auto& [name, found] : kernels.names) {
      names[name].between_windows += found.between_windows;
      names[name].windows += found.windows;
    }
  }
  return names;
}

double Between(const Groups& groups) {
  std::vector<Sum> sums;
  for (const auto& [key, sum] : groups) sums.push_back(sum);
  return SquaresBetween(sums);
}

VarianceShares SharesOf(const Grouped& grouped, double squares, int64_t count) {
  const auto share = [&](const Groups& groups) {
    return VarianceExplained(Between(groups), squares, count, static_cast<int64_t>(groups.size()));
  };
  // Within ranks: what is left of the squares, and of the degrees of freedom, when each has its own mean.
  const auto other_ranks = static_cast<int64_t>(grouped.by_rank.size()) - 1;
  return {.time = VarianceExplained(grouped.between_windows, squares - Between(grouped.by_rank),
                                    count - other_ranks, grouped.windows - other_ranks),
          .rank = share(grouped.by_rank),
          .stream = share(grouped.by_stream),
          .shape = share(grouped.by_shape)};
}

std::vector<SlowLine> SlowestOf(const Job& job, uint32_t name) {
  std::vector<SlowLine> slowest;
  for (const JobRank& rank : job.ranks) {
    const auto found = rank.result.kernels.names.find(name);
    if (found == rank.result.kernels.names.end()) continue;
    for (const SlowKernel& kernel : found->second.slowest)
      slowest.push_back({.rank = rank.number,
                         .stream = kernel.stream,
                         .start_ns = kernel.start_ns - rank.result.extent.first_ns,
                         .duration_ns = kernel.duration_ns});
  }
  std::ranges::stable_sort(slowest, {}, [](const SlowLine& line) {
    return std::tuple(-line.duration_ns, line.rank, line.start_ns, line.stream);
  });
  slowest.resize(std::min(slowest.size(), kSlowest));
  return slowest;
}

double RobustCv(const Job& job, uint32_t name) {
  const model::Sketch& sketch = job.kernels[name].sketch;
  const auto fine = job.fine.find(name);
  if (fine != job.fine.end()) {
    uint64_t counted = 0;
    for (const ValueCount& one : fine->second) counted += one.count;
    if (counted == sketch.count()) return RobustVariation(fine->second);
  }
  const int64_t median = sketch.Quantile(1, 2);
  return median > 0
             ? 1.4826 * static_cast<double>(sketch.MedianDistanceFrom(median)) / static_cast<double>(median)
             : 0;
}

}  // namespace

std::vector<VariabilityLine> FindVariability(const Job& job) {
  const std::map<uint32_t, Grouped> names = Group(job);
  std::vector<std::pair<uint32_t, VariabilityLine>> found;
  for (const auto& [name, grouped] : names) {
    const Durations& durations = job.kernels[name];
    if (durations.moments.count() < 2) continue;
    VariabilityLine line{.name = std::string(job.names[name]), .count = durations.moments.count()};
    line.communication = IsCommunication(job, name);
    line.excess_ns = std::llround(grouped.excess_ns);
    line.robust_cv = RobustCv(job, name);
    line.explained =
        SharesOf(grouped, static_cast<double>(durations.moments.SquaredDeviations()), line.count);
    line.outliers = CountOutliers(durations.sketch);
    found.emplace_back(name, std::move(line));
  }
  std::ranges::sort(found, {}, [](const auto& one) {
    return std::tuple(-one.second.excess_ns, -one.second.count, std::string_view(one.second.name));
  });
  found.resize(std::min(found.size(), kMaxLines));
  std::vector<VariabilityLine> lines;
  for (auto& [name, line] : found) {
    line.slowest = SlowestOf(job, name);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gpusonde::analyze
