// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "diagnose/detector_table.h"

namespace gpusonde::diagnose {

// How often clean steps are outliers: single ones that each lose much. Older steps count half. Not
// thread-safe.
class OutlierRate {
 public:
  void Count(double length_ns, bool is_outlier) {
    if (is_outlier) ++outliers_;
    counted_ns_ += length_ns;
    if (counted_ns_ < kDetector.outlier.counted_ns) return;
    counted_ns_ /= 2;
    outliers_ /= 2;
  }
  // A step that was counted isn't clean after all.
  void Uncount(double length_ns, bool is_outlier) {
    if (is_outlier) outliers_ = std::max(outliers_ - 1, 0.0);
    counted_ns_ = std::max(counted_ns_ - length_ns, 0.0);
  }

  // Whether so many outliers in a window, the last of which hasn't been counted yet, are more than by chance.
  // Counts of events that are independent of each other are Poisson-distributed.
  bool IsExceededBy(int outliers, int64_t window_ns) const {
    if (counted_ns_ == 0) return false;
    const double before = std::max(outliers_ - (outliers - 1), 0.0);
    // One more than were seen: none in ten seconds doesn't mean that there are none.
    const double expected = (before + 1) * static_cast<double>(window_ns) / counted_ns_;
    double fewer = 0, exactly = std::exp(-expected);
    for (int count = 0; count < outliers; ++count) {
      fewer += exactly;
      exactly *= expected / (count + 1);
    }
    return 1 - fewer < kDetector.outlier.chance;
  }

 private:
  double outliers_ = 0;  // among steps of counted_ns_
  double counted_ns_ = 0;
};

}  // namespace gpusonde::diagnose
