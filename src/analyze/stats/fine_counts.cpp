// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/fine_counts.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace gpusonde::analyze {
namespace {

constexpr int64_t kCells = 4096;

// Of counts sorted by value.
int64_t LowerMedian(std::span<const ValueCount> counts) {
  uint64_t all = 0;
  for (const ValueCount& one : counts) all += one.count;
  uint64_t left = all > 0 ? (all - 1) / 2 : 0;
  for (const ValueCount& one : counts) {
    if (left < one.count) return one.value_ns;
    left -= one.count;
  }
  return 0;
}

}  // namespace

bool IsStable(const model::Sketch& durations) {
  // 1.4826 · MAD < 5 % of the median, with the sketch's own error of 1.6 % on the MAD.
  const int64_t median_ns = durations.Quantile(1, 2);
  return median_ns > 0 && durations.count() > 1 && durations.MedianDistanceFrom(median_ns) < median_ns / 20;
}

FineCounts::FineCounts(const model::Sketch& all) {
  // The median is in its bucket, and the deviation at most two buckets, of 1.6 % each, off.
  const int64_t median_ns = all.Quantile(1, 2);
  const int64_t reach_ns = all.MedianDistanceFrom(median_ns) + median_ns / 30 + 1;
  const int64_t highest_ns = median_ns + reach_ns;
  const auto aligned = [this](int64_t value) { return value >> shift_ << shift_; };
  while (((highest_ns - aligned(std::max<int64_t>(0, median_ns - reach_ns))) >> shift_) >= kCells) ++shift_;
  lowest_ns_ = aligned(std::max<int64_t>(0, median_ns - reach_ns));
  cells_.resize(static_cast<size_t>((highest_ns - lowest_ns_) >> shift_) + 1);
}

std::vector<ValueCount> FineCounts::Finish() const {
  std::vector<ValueCount> counts;
  for (size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i] > 0)
      counts.push_back(
          {.value_ns = lowest_ns_ + (static_cast<int64_t>(i) << shift_) + ((int64_t{1} << shift_) - 1) / 2,
           .count = cells_[i]});
  std::vector<ValueCount> outside;
  outside_.ForEach([&outside](uint32_t bucket, uint64_t count) {
    outside.push_back({.value_ns = model::Sketch::MiddleOf(bucket), .count = count});
  });
  MergeCounts(counts, outside);
  return counts;
}

void MergeCounts(std::vector<ValueCount>& counts, std::span<const ValueCount> more) {
  std::vector<ValueCount> merged;
  merged.reserve(counts.size() + more.size());
  std::ranges::merge(counts, more, std::back_inserter(merged), {}, &ValueCount::value_ns,
                     &ValueCount::value_ns);
  counts.clear();
  for (const ValueCount& one : merged)
    if (!counts.empty() && counts.back().value_ns == one.value_ns)
      counts.back().count += one.count;
    else
      counts.push_back(one);
}

double RobustVariation(std::span<const ValueCount> counts) {
  const int64_t median_ns = LowerMedian(counts);
  if (median_ns <= 0) return 0;
  std::vector<ValueCount> distances;
  for (const ValueCount& one : counts) distances.push_back({std::abs(one.value_ns - median_ns), one.count});
  std::ranges::sort(distances, {}, &ValueCount::value_ns);
  return 1.4826 * static_cast<double>(LowerMedian(distances)) / static_cast<double>(median_ns);
}

}  // namespace gpusonde::analyze
