// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "analyze/findings/job.h"
#include "importers/ncu/units.h"

namespace gpusonde::analyze {
namespace {

// Kernel, metric, unit.
using Key = std::tuple<uint32_t, uint32_t, uint32_t>;

struct Gathered {
  model::Moments values;
  model::Sketch sketch;
  std::map<int64_t, Sum> by_rank;
  std::map<uint32_t, Sum> by_shape;
  std::map<uint32_t, PairMoments> with_duration;  // by shape
};

std::map<Key, Gathered> Gather(const Job& job) {
  std::map<Key, Gathered> all;
  for (const JobMetrics& metrics : job.metrics)
    for (const MetricSums& sums : metrics.sums) {
      Gathered& gathered = all[{sums.name, sums.metric, sums.unit}];
      const Sum sum{.count = sums.values.count(), .total_ns = sums.values.sum()};
      gathered.values.Merge(sums.values);
      gathered.sketch.Merge(sums.sketch);
      gathered.by_rank[metrics.rank].Merge(sum);
      gathered.by_shape[sums.shape].Merge(sum);
      gathered.with_duration[sums.shape].Merge(sums.with_duration);
    }
  return all;
}

template <class Groups>
double ShareOf(const Groups& groups, const model::Moments& values) {
  std::vector<Sum> sums;
  for (const auto& [key, sum] : groups) sums.push_back(sum);
  return VarianceExplained(SquaresBetween(sums), static_cast<double>(values.SquaredDeviations()),
                           values.count(), static_cast<int64_t>(sums.size()));
}

KernelMetricLine MetricLine(const Job& job, const Key& key, const Gathered& gathered) {
  const auto& [name, metric, unit] = key;
  KernelMetricLine line{.name = std::string(job.names[name]),
                        .metric = std::string(job.names[metric]),
                        .unit = std::string(job.names[unit])};
  const model::Moments& values = gathered.values;
  const double scale = std::pow(10.0, importers::ncu::DecimalsOf(line.unit));
  const auto quantile = [&](uint32_t percent) {
    return std::clamp(gathered.sketch.Quantile(percent, 100), values.min(), values.max());
  };
  const int64_t median = gathered.sketch.Quantile(1, 2);
  line.launches = values.count();
  line.ranks = static_cast<int64_t>(gathered.by_rank.size());
  line.min = static_cast<double>(values.min()) / scale;
  line.max = static_cast<double>(values.max()) / scale;
  line.mean = static_cast<double>(values.Mean()) / scale;
  line.stddev = static_cast<double>(values.StandardDeviation()) / scale;
  line.p50 = static_cast<double>(quantile(50)) / scale;
  line.p90 = static_cast<double>(quantile(90)) / scale;
  if (median > 0)
    line.robust_cv = 1.4826 * static_cast<double>(gathered.sketch.MedianDistanceFrom(median)) /
                     static_cast<double>(median);
  line.share_rank = ShareOf(gathered.by_rank, values);
  line.share_shape = ShareOf(gathered.by_shape, values);
  std::vector<PairMoments> shapes;
  PairMoments all;
  for (const auto& [shape, pairs] : gathered.with_duration) {
    shapes.push_back(pairs);
    all.Merge(pairs);
  }
  line.correlation = Correlation(std::array{all});
  line.correlation_within_shape = Correlation(shapes);
  return line;
}

}  // namespace

std::vector<KernelMetricLine> CompareKernelMetrics(const Job& job) {
  std::vector<std::pair<Int128, KernelMetricLine>> found;
  for (const auto& [key, gathered] : Gather(job)) {
    const uint32_t name = std::get<0>(key);
    const Int128 total_ns = name < job.kernels.size() ? job.kernels[name].moments.sum() : 0;
    found.emplace_back(total_ns, MetricLine(job, key, gathered));
  }
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    const auto order = [](const auto& one) {
      return std::tie(one.second.name, one.second.metric, one.second.unit);
    };
    return a.first != b.first ? a.first > b.first : order(a) < order(b);
  });
  std::vector<KernelMetricLine> lines;
  for (auto& [total_ns, line] : found) lines.push_back(std::move(line));
  return lines;
}

}  // namespace gpusonde::analyze
