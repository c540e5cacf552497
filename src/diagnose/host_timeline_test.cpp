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

}  // namespace
}  // namespace gpusonde::diagnose
