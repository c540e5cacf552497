// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/slices.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <vector>

namespace gpusonde::store {
namespace {

TEST(Grid, HasTheFinestPowerOfTwoThatFits) {
  EXPECT_EQ(Grid::Of({0, 1000}, 1000).resolution_ns, 1);
  EXPECT_EQ(Grid::Of({0, 1001}, 1000).resolution_ns, 2);
  EXPECT_EQ(Grid::Of({0, 1'000'000'000}, 1000).resolution_ns, 1 << 20);
  EXPECT_EQ(Grid::Of({5, 6}, 1000).resolution_ns, 1);
}

// As GET /api/v1/timeline takes them, with few columns.
TEST(Grid, HasAPlaceForEachTimeOfCenturies) {
  constexpr int64_t kNow = 1'800'000'000'000'000'000, kEnd = 9'007'199'254'740'991'000;
  for (const int columns : {1, 2, 3, 7, 40, 61, 1200}) {
    const Grid grid = Grid::Of({0, kEnd}, columns);
    EXPECT_GE(grid.resolution_ns, 1) << columns;
    EXPECT_LE(grid.cells(), static_cast<size_t>(columns) + 2);
    for (const int64_t time_ns : {int64_t{0}, kNow, kEnd - 1})
      EXPECT_LT(grid.PlaceOf(time_ns), grid.cells()) << columns << " " << time_ns;
    for (const bool counts_only : {false, true}) {
      SliceSums sums(grid);
      if (counts_only) sums.CountOnly();
      sums.Add({kNow, kNow + 10}, 0, 7);
      sums.Add({kNow + 20, kNow + 30}, 0, 7);
      EXPECT_EQ(sums.slices(), 1U) << columns;
      EXPECT_EQ(sums.events(), 2) << columns;
    }
  }
}

TEST(SliceSums, ALongEventIsItself) {
  SliceSums sums(Grid{{1000, 2000}, 16});
  sums.Add({900, 1100}, 0, 7);
  sums.Add({1990, 5000}, 0, 8);
  const std::vector<Slice> slices = sums.Take();
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].start_ns, 900);
  EXPECT_EQ(slices[0].length_ns, 200);
  EXPECT_EQ(slices[0].count, 1);
  EXPECT_EQ(slices[0].name, 7);
  EXPECT_EQ(slices[1].busy_ns, 3010);
}

TEST(SliceSums, ShortEventsOfACellAreOneSlice) {
  SliceSums sums(Grid{{1024, 2048}, 64});
  sums.Add({1030, 1040}, 0, 1);
  sums.Add({1050, 1065}, 0, 2);
  sums.Add({1066, 1069}, 0, 1);
  sums.Add({1088, 1089}, 0, 3);  // in the next cell
  const std::vector<Slice> slices = sums.Take();
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].start_ns, 1030);
  EXPECT_EQ(slices[0].length_ns, 39);
  EXPECT_EQ(slices[0].busy_ns, 28);
  EXPECT_EQ(slices[0].count, 3);
  EXPECT_EQ(slices[0].name, 2) << "15 ns of one, 13 ns of the other";
  EXPECT_EQ(slices[1].count, 1);
}

TEST(SliceSums, OnlyWhatTouchesTheRangeCounts) {
  SliceSums sums(Grid{{100, 200}, 8});
  sums.Add({90, 100}, 0, 0);
  sums.Add({200, 300}, 0, 0);
  sums.Add({99, 99}, 0, 0);
  sums.Add({150, 140}, 0, 0);
  EXPECT_EQ(sums.events(), 0);
  sums.Add({98, 101}, 0, 0);   // begins in the cell before the first
  sums.Add({100, 100}, 0, 0);  // takes no time
  sums.Add({199, 203}, 0, 0);
  EXPECT_EQ(sums.events(), 3);
  EXPECT_EQ(sums.busy_ns(), 2);
  const std::vector<Slice> slices = sums.Take();
  ASSERT_EQ(slices.size(), 2U);
  EXPECT_EQ(slices[0].start_ns, 98);
  EXPECT_EQ(slices[0].length_ns, 3);
  EXPECT_EQ(slices[0].count, 2);
  EXPECT_EQ(slices[1].start_ns, 199);
  EXPECT_EQ(slices[1].length_ns, 4);
}

TEST(SliceSums, RowsAreApartAndBounded) {
  SliceSums sums(Grid{{0, 1000}, 16});
  sums.Add({10, 12}, 1, 0);
  sums.Add({10, 12}, 0, 0);
  sums.Add({10, 12}, 1'000'000, 0);
  EXPECT_EQ(sums.rows(), SliceSums::kMaxRows);
  const std::vector<Slice> slices = sums.Take();
  ASSERT_EQ(slices.size(), 3U);
  EXPECT_EQ(slices[1].row, 1);
  EXPECT_EQ(slices[2].row, SliceSums::kMaxRows - 1);
}

TEST(SliceSums, OverlappingEventsOfADamagedFileAreSummed) {
  SliceSums sums(Grid{{0, 1 << 10}, 1 << 8});
  for (int i = 0; i < 1000; ++i) sums.Add({i, 1 << 20}, 0, i);
  const std::vector<Slice> slices = sums.Take();
  EXPECT_LT(slices.size(), 64U);
  int64_t count = 0;
  for (const Slice& slice : slices) {
    count += slice.count;
    EXPECT_LE(slice.busy_ns, slice.length_ns);
  }
  EXPECT_EQ(count, 1000);
}

// Whatever the events, in whichever order they come: none is lost, none is invented, and there are no more
// slices than places for them.
TEST(SliceSums, EventsAreCountedOnceInAnyOrder) {
  std::mt19937 random(41);
  for (int round = 0; round < 50; ++round) {
    const Grid grid = Grid::Of({10'000, 10'000 + 1 + static_cast<int64_t>(random() % 100'000)}, 100);
    std::vector<TimeRange> events;
    int64_t busy_ns = 0;
    for (int64_t at = 9'900; at < grid.range.to_ns;) {
      const auto length = static_cast<int64_t>(random() % (random() % 4 == 0 ? 5'000 : 50));
      events.push_back({at, at + length});
      at += length + static_cast<int64_t>(random() % 100);
    }
    SliceSums forwards(grid);
    SliceSums backwards(grid);
    for (size_t i = 0; i < events.size(); ++i) {
      forwards.Add(events[i], 0, static_cast<int32_t>(i % 5));
      const size_t j = events.size() - 1 - i;
      backwards.Add(events[j], 0, static_cast<int32_t>(j % 5));
    }
    SliceSums counted(grid);
    for (size_t i = 0; i < events.size(); ++i) {
      if (i == events.size() / 3) counted.CountOnly();
      counted.Add(events[i], 0, 0);
    }
    EXPECT_EQ(counted.slices(), forwards.slices());
    EXPECT_EQ(counted.busy_ns(), forwards.busy_ns());
    EXPECT_EQ(counted.bytes(), 0U);
    const int64_t added = forwards.events();
    EXPECT_EQ(added, backwards.events());
    const std::vector<Slice> slices = forwards.Take();
    const std::vector<Slice> others = backwards.Take();
    ASSERT_EQ(slices.size(), others.size());
    EXPECT_LE(slices.size(), 2 * (100 + 2) + 1U);
    EXPECT_EQ(slices.size(), forwards.slices());
    int64_t count = 0;
    for (size_t i = 0; i < slices.size(); ++i) {
      count += slices[i].count;
      busy_ns += slices[i].busy_ns;
      EXPECT_EQ(slices[i].start_ns, others[i].start_ns);
      EXPECT_EQ(slices[i].busy_ns, others[i].busy_ns);
      EXPECT_EQ(slices[i].name, others[i].name);
    }
    EXPECT_EQ(count, added);
    int64_t expected_ns = 0;
    for (const TimeRange& event : events)
      if (event.to_ns > grid.range.from_ns ||
          (event.to_ns == event.from_ns && event.from_ns >= grid.range.from_ns))
        if (event.from_ns < grid.range.to_ns) expected_ns += event.to_ns - event.from_ns;
    EXPECT_EQ(busy_ns, expected_ns);
  }
}

}  // namespace
}  // namespace gpusonde::store
