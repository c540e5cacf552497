// SPDX-License-Identifier: Apache-2.0
#include "importers/ncu/number.h"

#include <gtest/gtest.h>

#include <initializer_list>

#include "importers/ncu/units.h"

namespace gpusonde::importers::ncu {
namespace {

DecimalMark MarkOf(std::initializer_list<std::string_view> numbers) {
  DecimalMarkFinder finder;
  for (const std::string_view number : numbers) finder.Look(number);
  return finder.mark();
}

TEST(DecimalMarkFinder, DecidesByUnambiguousNumbers) {
  EXPECT_EQ(MarkOf({"1,234", "1.5"}), DecimalMark::kPoint);
  EXPECT_EQ(MarkOf({"1,234", "1,5"}), DecimalMark::kComma);
  EXPECT_EQ(MarkOf({"1.234.567"}), DecimalMark::kComma);
  EXPECT_EQ(MarkOf({"1,234,567"}), DecimalMark::kPoint);
  EXPECT_EQ(MarkOf({"1.234,56"}), DecimalMark::kComma);
  EXPECT_EQ(MarkOf({"1,234.56"}), DecimalMark::kPoint);
  EXPECT_EQ(MarkOf({"0,123"}), DecimalMark::kComma);
  EXPECT_EQ(MarkOf({"1234,567"}), DecimalMark::kComma);
}

TEST(DecimalMarkFinder, WithoutEvidenceItIsThePoint) {
  EXPECT_EQ(MarkOf({}), DecimalMark::kPoint);
  EXPECT_EQ(MarkOf({"1,234", "17", "n/a", "(1, 2,5)"}), DecimalMark::kPoint);
}

TEST(ParseNumber, ReadsBothWaysOfWriting) {
  EXPECT_EQ(ParseNumber("1,234.5", DecimalMark::kPoint, 1), 12345);
  EXPECT_EQ(ParseNumber("1.234,5", DecimalMark::kComma, 1), 12345);
  EXPECT_EQ(ParseNumber("1 234,5", DecimalMark::kComma, 1), 12345);
  EXPECT_EQ(ParseNumber("1\xE2\x80\xAF"
                        "234,5",
                        DecimalMark::kComma, 1),
            12345);
  EXPECT_EQ(ParseNumber("1\xC2\xA0"
                        "234,5",
                        DecimalMark::kComma, 1),
            12345);
  EXPECT_EQ(ParseNumber("1'234.5", DecimalMark::kPoint, 1), 12345);
  EXPECT_EQ(ParseNumber("-0.25", DecimalMark::kPoint, 2), -25);
  EXPECT_EQ(ParseNumber("1.5e+06", DecimalMark::kPoint, 0), 1'500'000);
}

TEST(ParseNumber, RefusesTextsAndWhatDoesNotFit) {
  for (const char* text : {"", "n/a", "-nan", "inf", "CachePreferNone", "NVIDIA A100", "-", "1..2", "12 GB",
                           "99999999999999999999", "1e99"})
    EXPECT_EQ(ParseNumber(text, DecimalMark::kPoint, 0), std::nullopt) << text;
  EXPECT_EQ(ParseNumber(std::string(65, '1'), DecimalMark::kPoint, 0), std::nullopt);
}

TEST(NormaliseUnit, TakesPrefixesAway) {
  const auto check = [](std::string_view written, std::string_view name, int exponent) {
    const Unit unit = NormaliseUnit(written);
    EXPECT_EQ(unit.name, name) << written;
    EXPECT_EQ(unit.exponent - unit.decimals, exponent) << written;
    EXPECT_EQ(unit.decimals, DecimalsOf(unit.name));
  };
  check("Kbyte", "byte", 3);
  check("Mbyte", "byte", 6);
  check("byte", "byte", 0);
  check("Gbyte/second", "byte/s", 9);
  check("byte/nsecond", "byte/s", 9);
  check("Gbyte/s", "byte/s", 9);
  check("usecond", "ns", 3);
  check("msecond", "ns", 6);
  check("nsecond", "ns", 0);
  check("second", "ns", 9);
  check("us", "ns", 3);
  check("Ghz", "Hz", 9);
  check("cycle/nsecond", "cycle/s", 9);
  check("Minst", "inst", 6);
  check("%", "%", 0);
  check("", "", 0);
  check("inst/cycle", "inst/cycle", 0);
  check("register/thread", "register/thread", 0);
  check("Kbyte/block", "byte/block", 3);
  check("Mystery", "Mystery", 0);
}

}  // namespace
}  // namespace gpusonde::importers::ncu
