// SPDX-License-Identifier: Apache-2.0
#include "base/time.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

namespace gpusonde {
namespace {

TEST(Time, FormatsUtcWithMillisecondsBeforeTheEpochToo) {
  EXPECT_EQ(FormatUtc(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(FormatUtc(1'763'687'525'123'456'789), "2025-11-21T01:12:05.123Z");
  EXPECT_EQ(FormatUtc(-1'000'000), "1969-12-31T23:59:59.999Z");
  for (const int64_t time_ns : {int64_t{-1}, int64_t{-1'000'000'000}}) {
    EXPECT_EQ(FormatUtcSecond(time_ns), "1969-12-31 23:59:59") << time_ns;
    EXPECT_EQ(FormatUtcMinute(time_ns), "1969-12-31 23:59") << time_ns;
    EXPECT_EQ(FormatUtcClock(time_ns), "23:59:59") << time_ns;
  }
  EXPECT_EQ(FormatUtcSecond(std::numeric_limits<int64_t>::max()), "2262-04-11 23:47:16");
  EXPECT_EQ(FormatUtcSecond(std::numeric_limits<int64_t>::min()), "1677-09-21 00:12:43");
}

TEST(Time, ParsesWhatItFormatsAndUpToNanoseconds) {
  EXPECT_EQ(ParseUtc("1970-01-01T00:00:00Z"), 0);
  EXPECT_EQ(ParseUtc("2025-11-21T01:12:05.123Z"), 1'763'687'525'123'000'000);
  EXPECT_EQ(ParseUtc("2025-11-21T01:12:05.123456789Z"), 1'763'687'525'123'456'789);
  EXPECT_EQ(ParseUtc("1969-12-31T23:59:59.9Z"), -100'000'000);
  EXPECT_EQ(ParseUtc("2024-02-29T00:00:00Z"), 1'709'164'800'000'000'000);
  EXPECT_EQ(ParseUtc("2024-02-29"), 1'709'164'800'000'000'000);
  EXPECT_EQ(ParseUtc("2025-11-21T01:12:05"), 1'763'687'525'000'000'000);
  EXPECT_EQ(ParseUtc("2025-11-21 01:12:05.5"), 1'763'687'525'500'000'000);
}

TEST(Time, RejectsInvalidTimes) {
  for (const char* text :
       {"", "12.5", "2025-11-2", "2025-11-21Z", "2025-11-21T", "2025-11-21T01:12", "2025-11-21/01:12:05",
        "2025-11-21T01:12:05+01:00", "2025-02-29", "2025-02-29T00:00:00Z", "2025-11-21T01:12:05ZZ",
        "2025-11-21T24:00:00Z", "2025-11-21T01:12:05.Z", "2025-11-21T01:12:05.0000000001Z",
        "2025-11-21T01:12:-5Z", "2025-11-21T01:12:05Zz", "1600-01-01T00:00:00Z"})
    EXPECT_EQ(ParseUtc(text), std::nullopt) << text;
}

TEST(Time, EpochOffsetConvertsMonotonicToEpoch) {
  const int64_t offset = MeasureEpochOffset();
  EXPECT_LT(std::abs(MonotonicNow() + offset - EpochNow()), kNanosPerSecond);
}

}  // namespace
}  // namespace gpusonde
