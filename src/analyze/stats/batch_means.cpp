// SPDX-License-Identifier: Apache-2.0
#include "analyze/stats/batch_means.h"

#include <vector>

namespace gpusonde::analyze {
namespace {

// Batches have different counts, so this is the variance of a ratio (Cochran 1977, section 6.3).
MeanError ErrorOf(std::span<const Batch> batches, double mean) {
  double squares = 0, total = 0, used = 0;
  for (const Batch& batch : batches) {
    if (batch.count == 0) continue;
    const auto count = static_cast<double>(batch.count);
    const double residual = static_cast<double>(batch.sum) - mean * count;
    squares += residual * residual;
    total += count;
    ++used;
  }
  if (used < 2) return {};
  return {.variance = squares * used / (used - 1) / (total * total), .freedom = used - 1};
}

}  // namespace

MeanError ErrorOfMean(std::span<const Batch> batches) {
  Batch all;
  for (const Batch& batch : batches) all.Merge(batch);
  if (all.count == 0) return {};
  const double mean = static_cast<double>(all.sum) / static_cast<double>(all.count);
  MeanError largest;
  for (const size_t size : kBatchesInGroup) {
    std::vector<Batch> groups((batches.size() + size - 1) / size);
    for (size_t i = 0; i < batches.size(); ++i) groups[i / size].Merge(batches[i]);
    const MeanError error = ErrorOf(groups, mean);
    if (error.freedom > 0 && error.variance >= largest.variance) largest = error;
  }
  return largest;
}

MeanError RelativeErrorOfMean(std::span<const int64_t> values) {
  std::vector<Batch> batches;
  double total = 0;
  for (const int64_t value : values) {
    batches.emplace_back().Add(value);
    total += static_cast<double>(value);
  }
  if (total == 0) return {};
  const double mean = total / static_cast<double>(values.size());
  MeanError error = ErrorOfMean(batches);
  error.variance /= mean * mean;
  return error;
}

}  // namespace gpusonde::analyze
