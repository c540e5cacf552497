// SPDX-License-Identifier: Apache-2.0
#include "fleet/histogram.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace gpusonde::fleet {

Row RoundToReport(const Bins& weights) {
  Bins usable;
  std::ranges::transform(weights, usable.begin(),
                         [](double weight) { return std::isfinite(weight) && weight > 0 ? weight : 0; });
  const double largest = std::ranges::max(usable);
  Row row{};
  row[kBins] = privacy::kReportWeight;
  if (largest == 0) {
    row[0] = privacy::kReportWeight;
    return row;
  }
  for (double& weight : usable) weight /= largest;  // so that no sum overflows
  const double total = std::accumulate(usable.begin(), usable.end(), 0.0);
  std::array<double, kBins> remainders;
  uint32_t given = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    const double share = usable[bin] / total * privacy::kReportWeight;
    row[bin] = static_cast<uint32_t>(share);
    remainders[bin] = share - row[bin];
    given += row[bin];
  }
  std::array<size_t, kBins> order;
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t bin) { return remainders[bin]; });
  for (size_t i = 0; given < privacy::kReportWeight; ++i, ++given) ++row[order[i % kBins]];
  return row;
}

}  // namespace gpusonde::fleet
