// SPDX-License-Identifier: Apache-2.0
#include "base/nearly_sorted.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace gpusonde {
namespace {

struct Piece {
  int key = 0;
  size_t place = 0;
  bool operator==(const Piece&) const = default;
};

// Keys that rise by about one at a time, some of them equal, each at most `shift` away from where it belongs.
std::vector<Piece> Shuffled(size_t count, int shift, std::mt19937& random) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < count; ++i)
    pieces.push_back({static_cast<int>(i) + static_cast<int>(random() % static_cast<unsigned>(shift)), i});
  return pieces;
}

TEST(SortNearlySorted, SortsAsAStableSortDoes) {
  std::mt19937 random(1);
  for (const size_t count : {0, 1, 2, 63, 64, 65, 127, 128, 129, 192, 193, 1'000, 5'000})
    for (const int shift : {1, 2, 50, 200, 5'000}) {
      std::vector<Piece> pieces = Shuffled(count, shift, random);
      std::vector<Piece> expected = pieces;
      std::ranges::stable_sort(expected, {}, &Piece::key);
      SortNearlySorted(pieces, &Piece::key);
      ASSERT_EQ(pieces, expected) << count << " pieces, shifted by up to " << shift;
    }
}

TEST(SortNearlySorted, SortsWhatIsInTheOppositeOrder) {
  std::vector<Piece> pieces;
  for (size_t i = 0; i < 1'000; ++i) pieces.push_back({-static_cast<int>(i / 2), i});
  std::vector<Piece> expected = pieces;
  std::ranges::stable_sort(expected, {}, &Piece::key);
  SortNearlySorted(pieces, &Piece::key);
  EXPECT_EQ(pieces, expected);
}

}  // namespace
}  // namespace gpusonde
