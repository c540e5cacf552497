// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/int128.h"

namespace gpusonde::analyze {

// Sums over pairs of integers, for their correlation; merging is addition. Sums beyond 128 bits saturate.
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

// Pearson's correlation of x and y about the means of each group, pooled. Empty if x or y doesn't vary within
// groups, or if fewer than 3 pairs remain after one from each group but the first.
std::optional<double> Correlation(std::span<const PairMoments> groups);

}  // namespace gpusonde::analyze
