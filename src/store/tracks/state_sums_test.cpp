// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/state_sums.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpusonde::store {
namespace {

TEST(StateSums, CountsWithoutTimesAsManySlices) {
  const Grid grid = Grid::Of({10'000, 20'000}, 100);
  for (const int64_t bucket_ns : {50, 128, 700}) {
    StateSums kept(grid);
    StateSums counted(grid);
    counted.CountOnly();
    StateSums halfway(grid);
    for (int64_t at = 9'900; at < 20'100; at += bucket_ns) {
      if (at > 15'000) halfway.CountOnly();
      for (const int32_t state : {7, 9, 12}) {
        if (at % (state * int64_t{100}) < 300) continue;
        for (StateSums* const sums : {&kept, &counted, &halfway})
          sums->Add({at, at + bucket_ns}, state, bucket_ns / 3);
      }
    }
    EXPECT_GT(kept.bytes(), 0U);
    EXPECT_EQ(counted.bytes(), 0U);
    EXPECT_EQ(halfway.bytes(), 0U);
    EXPECT_EQ(counted.slices(), kept.slices()) << bucket_ns;
    EXPECT_EQ(halfway.slices(), kept.slices()) << bucket_ns;
    EXPECT_EQ(kept.Take().size(), counted.slices()) << bucket_ns;
    EXPECT_TRUE(counted.Take().empty());
  }
}

TEST(StateSums, ACellMayEndLaterThanTimesDo) {
  constexpr int64_t kFrom = 4'700'000'000'000'000'000, kTo = 9'007'199'254'740'991'000;
  for (const bool counts_only : {false, true}) {
    StateSums sums(Grid::Of({0, kTo}, 2));
    if (counts_only) sums.CountOnly();
    sums.Add({kFrom, kFrom + 100}, 7, 30);
    sums.Add({kFrom + 100, kFrom + 200}, 7, 20);
    EXPECT_EQ(sums.slices(), 1U);
    const std::vector<Slice> slices = sums.Take();
    int64_t busy_ns = 0;
    for (const Slice& slice : slices) busy_ns += slice.busy_ns;
    EXPECT_EQ(busy_ns, counts_only ? 0 : 50);
  }
}

// As of a wait of 350 ns, in the first of the buckets that keep it.
TEST(StateSums, TimeThatIsLongerThanItsBucketBeganBeforeIt) {
  for (const int64_t resolution_ns : {64, 128}) {
    StateSums sums(Grid{{1024, 2048}, resolution_ns});
    sums.Add({1400, 1500}, 7, 350);
    int64_t total_ns = 0;
    for (const Slice& slice : sums.Take()) {
      EXPECT_GE(slice.start_ns + slice.length_ns, 1150);
      EXPECT_LT(slice.start_ns, 1500);
      EXPECT_LE(slice.busy_ns, slice.length_ns);
      total_ns += slice.busy_ns;
    }
    EXPECT_EQ(total_ns, 350);
  }
}

TEST(StateSums, OfALongWaitOnlyTheRangeIsKept) {
  for (const int64_t resolution_ns : {64, 128}) {
    StateSums sums(Grid{{1024, 2048}, resolution_ns});
    sums.Add({9000, 9100}, 7, 8'900);
    sums.Add({9000, 9100}, 8, 2'000);  // began after the range
    const std::vector<Slice> slices = sums.Take();
    EXPECT_LE(slices.size(), 18U);
    int64_t total_ns = 0;
    for (const Slice& slice : slices) total_ns += slice.busy_ns;
    EXPECT_NEAR(static_cast<double>(total_ns), 1024, 2 * 128);
  }
}

TEST(StateSums, OverlappingBucketsOfADamagedFileAreBounded) {
  const Grid grid{{0, 1 << 10}, 1 << 8};
  StateSums sums(grid);
  for (int32_t i = 0; i < 10'000; ++i) sums.Add({i % 1000, 100'000 + i}, i % 3, 5);
  EXPECT_EQ(sums.slices(), StateSums::kMaxPerCell * StateSums::kMaxStates * (grid.cells() + 1));
  sums.Add({0, 1 << 9}, 100, 5);
  EXPECT_EQ(sums.Take().size(), sums.slices());
}

TEST(StateSums, StatesBeyondTheMostAreLeftOut) {
  StateSums sums(Grid{{0, 1 << 10}, 1 << 8});
  for (int32_t state = 0; state < 20; ++state) sums.Add({0, 1 << 9}, state, 5);
  EXPECT_EQ(sums.Take().size(), StateSums::kMaxStates);
}

}  // namespace
}  // namespace gpusonde::store
