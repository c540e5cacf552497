// SPDX-License-Identifier: Apache-2.0
#include "analyze/report/sentences.h"

#include <gtest/gtest.h>

#include "analyze/report.h"

namespace gpusonde::analyze {
namespace {

TEST(Sentences, TimesAreThoseThatTheTraceHasAndOfRecordingsThoseOfTheDay) {
  constexpr int64_t kBegin = 1'795'990'403'123'456'789;
  EXPECT_EQ(FromTo({.path = "a.json", .format = "kineto-json"}, kBegin, kBegin + 1'211),
            "from 1795990403123456.789 to 1795990403123458 µs");
  EXPECT_EQ(FromTo({.path = "a.sqlite", .format = "nsys-sqlite"}, 12, 15), "from 12 to 15 ns");
  const TraceLine recording{.path = "a.sonde", .format = "sonde"};
  EXPECT_EQ(FromTo(recording, kBegin, kBegin + 7'000'000'000),
            "from 2026-11-29 22:13:23.123456 to 22:13:30.123456 UTC");
  EXPECT_EQ(FromTo(recording, kBegin, kBegin + 7'200'000'000'000),
            "from 2026-11-29 22:13:23.123456 to 2026-11-30 00:13:23.123456 UTC");
  EXPECT_EQ(FromTo(recording, -1'000, 0),
            "from 1969-12-31 23:59:59.999999 to 1970-01-01 00:00:00.000000 UTC");
}

}  // namespace
}  // namespace gpusonde::analyze
