// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/launch_pattern.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "analyze/archive.h"
#include "analyze/timeline/process_timeline.h"

namespace gpusonde::analyze {
namespace {

constexpr int64_t kLongNs = 1'000'000;

std::vector<int64_t> TimesOf(const std::vector<int64_t>& gaps) {
  std::vector<int64_t> times = {5'000};
  for (const int64_t gap_ns : gaps) times.push_back(times.back() + gap_ns);
  return times;
}

ThreadLaunches Launched(const std::vector<int64_t>& times) {
  LaunchFollower follower;
  for (const int64_t time_ns : times) follower.Launch(7, time_ns, 1);
  const LaunchPattern pattern = std::move(follower).Finish();
  EXPECT_EQ(pattern.threads.size(), 1u);
  return pattern.threads[0];
}

int64_t SumFrom(const std::array<int64_t, ThreadLaunches::kBuckets>& sums, size_t bucket) {
  return std::accumulate(sums.begin() + static_cast<ptrdiff_t>(bucket), sums.end(), int64_t{0});
}

// For every power of two as the shortest pause, pauses and launches between two of them are those of looking
// at each gap.
TEST(LaunchFollower, PausesOfAnyLengthAndLoneLaunchesAreThoseOfEachGap) {
  std::mt19937_64 random(3);
  std::vector<int64_t> gaps;
  for (int i = 0; i < 2'000; ++i)
    gaps.push_back(1 + static_cast<int64_t>(random() % (uint64_t{1} << (4 + random() % 30))));
  const ThreadLaunches launches = Launched(TimesOf(gaps));
  EXPECT_EQ(launches.launches, 2'001);
  EXPECT_EQ(launches.longest_gap_ns, std::ranges::max(gaps));
  for (size_t bucket = 1; bucket < ThreadLaunches::kBuckets; ++bucket) {
    const int64_t from_ns = ThreadLaunches::LowestOf(bucket);
    int64_t pauses = 0, pauses_ns = 0, lone = 0;
    for (size_t i = 0; i <= gaps.size(); ++i) {
      const bool before = i == 0 || gaps[i - 1] >= from_ns;
      const bool after = i == gaps.size() || gaps[i] >= from_ns;
      lone += before && after ? 1 : 0;
      if (i < gaps.size() && after) {
        ++pauses;
        pauses_ns += gaps[i];
      }
    }
    EXPECT_EQ(launches.gaps.CountAbove(from_ns - 1), static_cast<uint64_t>(pauses)) << from_ns;
    EXPECT_EQ(SumFrom(launches.gap_ns, bucket), pauses_ns) << from_ns;
    EXPECT_EQ(SumFrom(launches.lone, bucket), lone) << from_ns;
  }
}

TEST(LaunchFollower, EventsOfOneCallAreOneLaunch) {
  EXPECT_EQ(Launched({100, 100, 100, 400}).launches, 2);
  const ThreadLaunches single = Launched({100});
  EXPECT_EQ(single.launches, 1);
  EXPECT_EQ(SumFrom(single.lone, 0), 1);
}

TEST(LaunchFollower, ThreadsBeyondTheBoundAreOnlyCounted) {
  LaunchFollower follower;
  constexpr uint32_t kThreads = LaunchPattern::kMaxThreads + 10;
  for (int64_t round = 0; round < 3; ++round)
    for (uint32_t thread = 0; thread < kThreads; ++thread) {
      follower.Launch(thread, round * kLongNs + thread, 0);
      follower.Start(thread, 50);
    }
  const LaunchPattern pattern = std::move(follower).Finish();
  ASSERT_EQ(pattern.threads.size(), LaunchPattern::kMaxThreads);
  EXPECT_EQ(pattern.others, 30);
  for (const ThreadLaunches& thread : pattern.threads) {
    EXPECT_EQ(thread.launches, 3);
    EXPECT_EQ(thread.behind.count(), 3u);
    EXPECT_EQ(SumFrom(thread.drained, 1), 2);
  }
}

// Two threads of one process, the second of which copies only; a pause at whose end a kernel still waits.
TEST(FollowProcesses, LaunchesAreThoseOfKernelsByThread) {
  std::vector<importers::GpuEvent> events;
  std::vector<importers::ApiCall> calls;
  const auto add = [&](int64_t call_ns, int64_t start_ns, uint32_t thread, importers::GpuWork work) {
    const auto correlation = static_cast<int64_t>(events.size()) + 1;
    events.push_back(
        {.start_ns = start_ns, .end_ns = start_ns + 100, .correlation = correlation, .work = work});
    calls.push_back(
        {.start_ns = call_ns, .end_ns = call_ns + 50, .correlation = correlation, .thread = thread});
  };
  using importers::GpuWork;
  add(1'000, 2'000, 4, GpuWork::kKernel);
  add(1'200, 3'000, 4, GpuWork::kKernel);
  add(1'300, 700'000, 9, GpuWork::kMemcpy);
  add(600'000, 800'000, 4, GpuWork::kGraph);       // while the copy waits
  add(1'600'000, 1'700'000, 4, GpuWork::kKernel);  // nothing waits
  TraceState state;
  state.Name("gemm");
  state.Gpu(events);
  state.Api(calls);
  ASSERT_TRUE(state.Finish().has_value());
  const auto results = FollowProcesses(state, 1).value();
  const LaunchPattern& pattern = results[0].launches;
  ASSERT_EQ(pattern.threads.size(), 1u);
  const ThreadLaunches& thread = pattern.threads[0];
  EXPECT_EQ(thread.thread, 4u);
  EXPECT_EQ(thread.launches, 4);
  EXPECT_EQ(thread.first_ns, 1'000);
  EXPECT_EQ(thread.last_ns, 1'600'000);
  EXPECT_EQ(SumFrom(thread.drained, 0), 1);
  EXPECT_EQ(thread.waiting, 0 + 1 + 1 + 0);
  EXPECT_EQ(thread.behind.count(), 4u);
  EXPECT_EQ(model::Sketch::BucketOf(1'000), model::Sketch::BucketOf(thread.behind.Quantile(0, 1)));
}

TEST(LaunchPattern, IsArchivedWholeAndRefusesSumsThatContradictEachOther) {
  LaunchFollower follower;
  for (const int64_t time_ns : TimesOf({5, 70'000, 8, 900'000})) follower.Launch(7, time_ns, 0);
  LaunchPattern pattern = std::move(follower).Finish();
  const auto read = [](LaunchPattern& written, LaunchPattern& copy) {
    ArchiveWriter writer;
    writer(written);
    const std::string bytes = writer.Take();
    ArchiveReader reader(bytes);
    reader(copy);
    return reader.ok();
  };
  LaunchPattern copy;
  ASSERT_TRUE(read(pattern, copy));
  EXPECT_EQ(copy.threads[0].lone, pattern.threads[0].lone);
  EXPECT_EQ(copy.threads[0].gaps, pattern.threads[0].gaps);
  for (int64_t ThreadLaunches::* const sum : {&ThreadLaunches::launches, &ThreadLaunches::last_ns}) {
    LaunchPattern damaged = pattern;
    ++(damaged.threads[0].*sum);
    EXPECT_FALSE(read(damaged, copy));
  }
}

}  // namespace
}  // namespace gpusonde::analyze
