// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/track_builder.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>

namespace gpusonde::store {
namespace {

constexpr Id128 kProcess{1, 1}, kGpu{2, 2};
constexpr TimeRange kRange{1'000'000, 2'000'000};

// Threads with calls and states, the more the higher their number, and two streams.
void AddAll(TrackBuilder& builder, int threads, int64_t step_ns) {
  const int32_t running = builder.NameOf(EventKind::kState, kThreadStates[0]);
  const int32_t waits = builder.NameOf(EventKind::kState, kThreadStates[6]);
  for (int thread = 0; thread < threads; ++thread) {
    const TrackKey calls{TrackKind::kCalls, kProcess, {}, thread};
    const TrackKey states{TrackKind::kStates, kProcess, {}, thread};
    for (int64_t at = kRange.from_ns; at < kRange.to_ns; at += step_ns) {
      const int32_t name =
          builder.NameOf(EventKind::kCall, std::string("call ") + std::to_string(at / step_ns % 7));
      builder.Add(calls, {at, at + 10 + thread}, 0, name);
      builder.Add(calls, {at + 5, at + 8}, 1, name);
      builder.AddState(states, {at, at + step_ns}, running, 1 + thread);
      builder.AddState(states, {at, at + step_ns}, waits, step_ns / 2);
    }
  }
  for (int stream = 0; stream < 2; ++stream)
    builder.Add({TrackKind::kStream, kProcess, kGpu, stream}, {1'100'000, 1'900'000 + stream}, 0,
                builder.NameOf(EventKind::kKernel, "gemm"));
}

void ExpectEqual(const Tracks& a, const Tracks& b) {
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.omitted, b.omitted);
  ASSERT_EQ(a.tracks.size(), b.tracks.size());
  for (size_t i = 0; i < a.tracks.size(); ++i) {
    const Track& x = a.tracks[i];
    const Track& y = b.tracks[i];
    EXPECT_EQ(x.kind, y.kind) << i;
    EXPECT_EQ(x.tid, y.tid) << i;
    EXPECT_EQ(x.stream, y.stream) << i;
    EXPECT_EQ(x.rows, y.rows) << i;
    ASSERT_EQ(x.slices.size(), y.slices.size()) << i;
    for (size_t j = 0; j < x.slices.size(); ++j) {
      EXPECT_EQ(x.slices[j].start_ns, y.slices[j].start_ns);
      EXPECT_EQ(x.slices[j].length_ns, y.slices[j].length_ns);
      EXPECT_EQ(x.slices[j].row, y.slices[j].row);
      EXPECT_EQ(x.slices[j].count, y.slices[j].count);
      EXPECT_EQ(x.slices[j].busy_ns, y.slices[j].busy_ns);
      EXPECT_EQ(a.names[static_cast<size_t>(x.slices[j].name)].text,
                b.names[static_cast<size_t>(y.slices[j].name)].text);
    }
  }
}

// What so many tracks would be if memory were no matter, and the same with as little as `max_bytes`.
void ExpectTheSameInTwoPasses(int threads, int64_t step_ns, size_t max_bytes) {
  const Grid grid = Grid::Of(kRange, 1000);
  TrackBuilder once(grid, size_t{1} << 40);
  AddAll(once, threads, step_ns);
  ASSERT_FALSE(once.NeedsSecondPass());
  TrackBuilder twice(grid, max_bytes);
  AddAll(twice, threads, step_ns);
  ASSERT_TRUE(twice.NeedsSecondPass());
  AddAll(twice, threads, step_ns);
  ASSERT_FALSE(twice.NeedsSecondPass());
  const Tracks expected = once.Take();
  EXPECT_GT(expected.omitted, 0);
  ExpectEqual(expected, twice.Take());
}

TEST(TrackBuilder, TracksAreTheSameWhenTheirSlicesAreMadeInASecondPass) {
  ExpectTheSameInTwoPasses(/*threads=*/300, /*step_ns=*/20'000, /*max_bytes=*/100'000);  // too many tracks
  ExpectTheSameInTwoPasses(/*threads=*/130, /*step_ns=*/700, /*max_bytes=*/1'000'000);   // too many slices
}

TEST(TrackBuilder, ThreadsThatAreRemovedAreNotChosen) {
  const Grid grid = Grid::Of(kRange, 1000);
  TrackBuilder builder(grid, /*max_bytes=*/1'000);
  for (int pass = 0; pass < 2; ++pass) {
    AddAll(builder, 210, 20'000);
    builder.Remove(kProcess, 209);
    EXPECT_EQ(builder.NeedsSecondPass(), pass == 0);
  }
  const Tracks tracks = builder.Take();
  ASSERT_EQ(tracks.tracks.size(), TrackBuilder::kMaxTracks);
  EXPECT_EQ(tracks.tracks[2].tid, 208);
  EXPECT_EQ(tracks.omitted, 2 + 2 * 209 - static_cast<int64_t>(TrackBuilder::kMaxTracks));
}

}  // namespace
}  // namespace gpusonde::store
