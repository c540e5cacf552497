// SPDX-License-Identifier: Apache-2.0
#include "importers/decimal.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

#include "importers/event.h"

namespace gpusonde::importers {
namespace {

TEST(ParseMicroseconds, KeepsEveryNanosecondOfAnEpochTime) {
  EXPECT_EQ(ParseMicroseconds("1712195495519689.123"), 1712195495519689123);
  EXPECT_EQ(ParseMicroseconds("1712195495519689"), 1712195495519689000);
  EXPECT_EQ(ParseMicroseconds("1712195495519689.5 "), 1712195495519689500);
  EXPECT_EQ(ParseMicroseconds("4458676524670.502"), 4458676524670502);
  EXPECT_EQ(ParseMicroseconds("2305843009213693.952"), kMaxTimeNs);
}

TEST(ParseMicroseconds, AcceptsEverySpellingOfANumber) {
  EXPECT_EQ(ParseMicroseconds("0"), 0);
  EXPECT_EQ(ParseMicroseconds("68.0"), 68000);
  EXPECT_EQ(ParseMicroseconds("-1.5"), -1500);
  EXPECT_EQ(ParseMicroseconds("1.5e3"), 1500000);
  EXPECT_EQ(ParseMicroseconds("15E-1"), 1500);
  EXPECT_EQ(ParseMicroseconds("0.96 \n"), 960);
  EXPECT_EQ(ParseMicroseconds("\"2.5\""), 2500);
  EXPECT_EQ(ParseMicroseconds("0.0000000000000000000000000000000000000000000000001"), 0);
}

TEST(ParseMicroseconds, RoundsBeyondNanoseconds) {
  EXPECT_EQ(ParseMicroseconds("1.0004"), 1000);
  EXPECT_EQ(ParseMicroseconds("1.0005"), 1001);
  EXPECT_EQ(ParseMicroseconds("-1.0005"), -1001);
  EXPECT_EQ(ParseMicroseconds("68.00000000000001"), 68000);
}

TEST(ParseMicroseconds, RefusesWhatIsNoNumberOrTooLarge) {
  for (const char* text : {"",
                           " ",
                           "-",
                           ".",
                           "1.",
                           ".5",
                           "1e",
                           "1e+",
                           "0x10",
                           "1,5",
                           "nan",
                           "null",
                           "true",
                           "1 2",
                           "--1",
                           "1e300",
                           "99999999999999999999999",
                           "1e18",
                           "2305843009213693.953",
                           "9999999999999999",
                           "\"",
                           "\"\""})
    EXPECT_EQ(ParseMicroseconds(text), std::nullopt) << text;
}

TEST(ParseMicroseconds, IsTheInverseOfPrinting) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto ns = static_cast<int64_t>(random() >> (3 + random() % 60));
    EXPECT_EQ(ParseMicroseconds(fmt::format("{}.{:03}", ns / 1000, ns % 1000)), ns);
    EXPECT_EQ(ParseMicroseconds(fmt::format("-{}.{:03}", ns / 1000, ns % 1000)), -ns);
  }
}

TEST(ParseWhole, AcceptsIntegersOnly) {
  EXPECT_EQ(ParseWhole("12 "), 12);
  EXPECT_EQ(ParseWhole("\"12\""), 12);
  for (const char* const text : {"1.5", "1e-1", "9223372036854775808", "9223372036854775808.0", "1e19",
                                 "1e300", "", "1.", "nan", "true", "\"12.5\""})
    EXPECT_EQ(ParseWhole(text), std::nullopt) << text;
}

TEST(ParseWhole, AcceptsTheSpellingsOfDoubles) {
  EXPECT_EQ(ParseWhole("7.0"), 7);
  EXPECT_EQ(ParseWhole("-7.000 "), -7);
  EXPECT_EQ(ParseWhole("\"7.0\""), 7);
  EXPECT_EQ(ParseWhole("1.2e1"), 12);
  EXPECT_EQ(ParseWhole("120e-1"), 12);
  EXPECT_EQ(ParseWhole("0.0"), 0);
  EXPECT_EQ(ParseWhole("0e300"), 0);
  EXPECT_EQ(ParseWhole("4294967295.0"), 4294967295);
  EXPECT_EQ(ParseWhole("9223372036854775807.0"), 9223372036854775807);
}

}  // namespace
}  // namespace gpusonde::importers
