// SPDX-License-Identifier: Apache-2.0
#include "otlp/retry_after.h"

#include <gtest/gtest.h>

#include "base/time.h"

namespace gpusonde::otlp {
namespace {

TEST(RetryAfter, IsSecondsOrADateAndAtMostTenMinutes) {
  const int64_t now_ns = ParseUtc("2026-11-25T20:00:00Z").value();
  EXPECT_EQ(ReadRetryAfter("7", now_ns), 7 * kNanosPerSecond);
  EXPECT_EQ(ReadRetryAfter("0", now_ns), 0);
  EXPECT_EQ(ReadRetryAfter("86400", now_ns), 600 * kNanosPerSecond);
  EXPECT_EQ(ReadRetryAfter("99999999999999999999999", now_ns), 600 * kNanosPerSecond);
  EXPECT_EQ(ReadRetryAfter("Wed, 25 Nov 2026 20:00:30 GMT", now_ns), 30 * kNanosPerSecond);
  EXPECT_EQ(ReadRetryAfter("Wed, 25 Nov 2026 19:00:00 GMT", now_ns), 0);
  for (const char* other :
       {"", "soon", "-5", "7 s", "7.5", "Wed, 25 Nov 2026", "Wed, 25 Nov 2026 20:00:30 GMT "})
    EXPECT_EQ(ReadRetryAfter(other, now_ns), std::nullopt) << other;
}

}  // namespace
}  // namespace gpusonde::otlp
