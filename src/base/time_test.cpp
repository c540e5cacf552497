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
