// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace gpusonde {
namespace {

TEST(Time, FormatsUtcWithMillisecondsBeforeTheEpochToo) {
  EXPECT_EQ(FormatUtc(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(1'763'687'525'123'456'789), "2025-11-21T01:12:05.123Z");
  EXPECT_EQ(FormatUtc(-1'000'000), "1969-12-31T23:59:59.999Z");
}

TEST(Time, EpochOffsetTurnsMonotonicIntoEpoch) {
  const int64_t offset = MeasureEpochOffset();
  EXPECT_LT(std::abs(MonotonicNow() + offset - EpochNow()), kNanosPerSecond);
}

}  // namespace
}  // namespace gpusonde
