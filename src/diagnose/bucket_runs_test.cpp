// SPDX-License-Identifier: Apache-2.0
#include "diagnose/bucket_runs.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr Id128 kWaker{1, 1};
constexpr int64_t kBucketLength = 10 * kNanosPerMilli;

// Begin and end of a bucket and of its part in a range, and the time in two states.
using Visited = std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t, double, double>>;

Visited Visit(const BucketRuns& buckets, const TimeRange& range) {
  Visited visited;
  buckets.ForEach(range, [&](const ThreadTime& time, const TimeRange& bucket, const TimeRange& part) {
    visited.emplace_back(bucket.from_ns, bucket.to_ns, part.from_ns, part.to_ns, time[ThreadState::kSleeping],
                         time.By(ThreadState::kWaiting, kWaker));
  });
  return visited;
}

TEST(BucketRuns, ManyEqualBucketsAreStoredOnce) {
  BucketRuns buckets;
  buckets.Add(0, kBucketLength, 6'000, ThreadState::kSleeping, kBucketLength, {});
  EXPECT_EQ(buckets.runs(), 1u);
  EXPECT_EQ(buckets.last_ns(), 5'999 * kBucketLength);
  buckets.Add(3'000 * kBucketLength, kBucketLength, 1, ThreadState::kWaiting, 5, kWaker);
  EXPECT_EQ(buckets.runs(), 3u);
  EXPECT_EQ(Visit(buckets, {2'999 * kBucketLength + 3, 3'001 * kBucketLength}),
            (Visited{{2'999 * kBucketLength, 3'000 * kBucketLength, 2'999 * kBucketLength + 3,
                      3'000 * kBucketLength, kBucketLength, 0},
                     {3'000 * kBucketLength, 3'001 * kBucketLength, 3'000 * kBucketLength,
                      3'001 * kBucketLength, kBucketLength, 5}}));
  EXPECT_EQ(buckets.SumOf(ThreadState::kSleeping, {1, 100 * kBucketLength}), 99 * kBucketLength);
  buckets.ForgetBefore(10 * kBucketLength + 1);
  EXPECT_EQ(buckets.first_ns(), 11 * kBucketLength);
  EXPECT_EQ(buckets.runs(), 3u);
}

TEST(BucketRuns, AnyTimesMayBeAskedFor) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  BucketRuns buckets;
  buckets.Add(-5 * kBucketLength, kBucketLength, 10, ThreadState::kSleeping, 1, {});
  EXPECT_EQ(Visit(buckets, {kFirst, kLast}).size(), 10u);
  EXPECT_EQ(buckets.SumOf(ThreadState::kSleeping, {kFirst, kLast}), 10);
  EXPECT_TRUE(Visit(buckets, {kLast - 1, kLast}).empty());
  buckets.ForgetBefore(kLast);
  EXPECT_TRUE(buckets.empty());
}

// The same, with a row for each bucket.
struct Plain {
  struct Cell {
    int64_t length_ns = 0;
    ThreadTime time;
  };
  std::map<int64_t, Cell> cells;

  void Add(int64_t start_ns, int64_t length_ns, int64_t count, ThreadState state, double ns,
           const Id128& other) {
    for (; count > 0; --count, start_ns += length_ns) {
      cells[start_ns].length_ns = length_ns;
      cells[start_ns].time.Add(state, ns, other);
    }
  }
  Visited Visit(const TimeRange& range) const {
    Visited visited;
    auto at = cells.upper_bound(range.from_ns);
    if (at != cells.begin()) --at;
    for (; at != cells.end() && at->first < range.to_ns; ++at) {
      const TimeRange part{std::max(at->first, range.from_ns),
                           std::min(at->first + at->second.length_ns, range.to_ns)};
      if (part.from_ns < part.to_ns)
        visited.emplace_back(at->first, at->first + at->second.length_ns, part.from_ns, part.to_ns,
                             at->second.time[ThreadState::kSleeping],
                             at->second.time.By(ThreadState::kWaiting, kWaker));
    }
    return visited;
  }
  double SumOf(const TimeRange& begins) const {
    double ns = 0;
    for (auto at = cells.lower_bound(begins.from_ns); at != cells.end() && at->first < begins.to_ns; ++at)
      ns += at->second.time[ThreadState::kSleeping];
    return ns;
  }
};

TEST(BucketRuns, AreLikeBucketsThatAreStoredOneByOne) {
  std::mt19937 random(5);
  const auto pick = [&](int64_t from, int64_t to) { return std::uniform_int_distribution(from, to)(random); };
  for (int run = 0; run < 300; ++run) {
    BucketRuns buckets;
    Plain plain;
    for (int i = 0; i < 60; ++i) {
      // Mostly of one length and alignment, as the kernel's are.
      const int64_t length_ns = pick(0, 9) < 8 ? 10 : pick(1, 25);
      const int64_t start_ns = pick(0, 9) < 8 ? 10 * pick(-50, 50) : pick(-500, 500);
      const int64_t count = pick(0, 2) == 0 ? pick(2, 60) : 1;
      const ThreadState state = pick(0, 1) == 0 ? ThreadState::kSleeping : ThreadState::kWaiting;
      const auto ns = static_cast<double>(pick(1, 10));
      buckets.Add(start_ns, length_ns, count, state, ns, kWaker);
      plain.Add(start_ns, length_ns, count, state, ns, kWaker);
      if (pick(0, 19) == 0) {
        const int64_t forgotten_ns = pick(-500, 200);
        buckets.ForgetBefore(forgotten_ns);
        plain.cells.erase(plain.cells.begin(), plain.cells.lower_bound(forgotten_ns));
      }
      ASSERT_EQ(buckets.empty(), plain.cells.empty());
      if (buckets.empty()) continue;
      ASSERT_EQ(buckets.first_ns(), plain.cells.begin()->first);
      ASSERT_EQ(buckets.last_ns(), plain.cells.rbegin()->first);
      const int64_t from_ns = pick(-600, 1'200);
      const TimeRange range{from_ns, from_ns + pick(0, 300)};
      ASSERT_EQ(Visit(buckets, range), plain.Visit(range)) << run << ": " << from_ns;
      ASSERT_EQ(buckets.SumOf(ThreadState::kSleeping, range), plain.SumOf(range)) << run << ": " << from_ns;
    }
  }
}

}  // namespace
}  // namespace gpusonde::diagnose
