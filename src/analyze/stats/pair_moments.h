// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/int128.h"

namespace gpusonde::analyze {

// Sums of pairs of whole numbers, for their correlation; merging is addition. Sums that 128 bits don't hold
// stay at the largest number.
struct PairMoments {
  int64_t count = 0;
  Int128 x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void Add(int64_t of_x, int64_t of_y);
  void Merge(const PairMoments& other);

  template <class Archive>
  void Transfer(Archive& archive) {
    archive(count);
    archive(x);
    archive(y);
    archive(xx);
    archive(yy);
    archive(xy);
    archive.Require(count >= 0);
  }
};

// Pearson's correlation of x and y about the means of each group, pooled; of one group the plain one. Nothing
// where x or y doesn't vary within groups, or where less than 3 pairs are left after one from each group but
// the first.
std::optional<double> Correlation(std::span<const PairMoments> groups);

}  // namespace gpusonde::analyze
