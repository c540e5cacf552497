// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_timeline.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kSignalStart = 1'700'000'000 * kNanosPerSecond;
constexpr Id128 kProcess{1, 1};

model::Signal Running(int64_t bucket_ns) {
  return {.start_ns = kSignalStart,
          .bucket_ns = bucket_ns,
          .metric = "thread.running",
          .process = kProcess,
          .tid = 7,
          .values = {kNanosPerMilli, kNanosPerMilli}};
}

TEST(HostTimelineTest, RowsWhoseTimesLeaveTheRangeOf64BitsAreLeftOut) {
  HostTimeline host;
  for (const int64_t bucket_ns : {INT64_MAX, INT64_MAX - kSignalStart, int64_t{0}, INT64_MIN}) {
    host.Ingest(Running(bucket_ns));
    EXPECT_FALSE(host.Knows(kProcess)) << bucket_ns;
  }
  host.Ingest(Running(10 * kNanosPerMilli));
  EXPECT_EQ(host.KnownUntil(kProcess, 7), kSignalStart + 10 * kNanosPerMilli);
}

TEST(HostTimelineTest, ALongWaitFillsTheBucketsBeforeItsEnd) {
  HostTimeline host;
  constexpr int64_t kBucketNs = 10 * kNanosPerMilli;
  model::Signal sleeping = Running(kBucketNs);
  sleeping.metric = "thread.sleeping";
  sleeping.values = {25 * kNanosPerMilli, 0, 3 * kNanosPerMilli, 3 * kNanosPerMilli, 80 * kNanosPerSecond};
  host.Ingest(sleeping);
  const auto slept_ms = [&](int64_t from, int64_t to) {
    const TimeRange range{kSignalStart + from * kBucketNs, kSignalStart + to * kBucketNs};
    return host.Of(kProcess, 7, range)[ThreadState::kSleeping] / kNanosPerMilli;
  };
  EXPECT_EQ(host.KnownSince(kProcess, 7), kSignalStart - 5'995 * kBucketNs) << "a minute of the last one";
  EXPECT_EQ(host.KnownUntil(kProcess, 7), kSignalStart + 4 * kBucketNs);
  EXPECT_EQ(slept_ms(-5'995, -2), 59'930);
  EXPECT_EQ(slept_ms(-2, -1), 15) << "with the rest of the first one";
  EXPECT_EQ(slept_ms(-1, 5), 6 * 10 + 2 * 10 + 2 * 3);
}

}  // namespace
}  // namespace gpusonde::diagnose
