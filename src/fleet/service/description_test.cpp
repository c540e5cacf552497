// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/description.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fleet/service/testing/fleet.h"

namespace gpusonde::fleet {
namespace {

using ::testing::HasSubstr;

Description UsualFleet() {
  Description fleet = testing::SmallFleet();
  fleet.rules = {};
  return fleet;
}

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), by);
}

TEST(DescriptionTest, ReadsWhatItWrote) {
  const Description fleet = UsualFleet();
  const auto read = ParseDescription(ToJson(fleet));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(ToJson(*read), ToJson(fleet));
  EXPECT_EQ(read->Id(), fleet.Id());
  EXPECT_EQ(read->layout().places(), 2u);
}

TEST(DescriptionTest, AnyChangeMakesAnotherFleet) {
  Description other = UsualFleet();
  other.rules.min_reports = 999;
  EXPECT_NE(other.Id(), UsualFleet().Id());
  other = UsualFleet();
  other.catalog.applications[0].fingerprint[7] = 1;
  EXPECT_NE(other.Id(), UsualFleet().Id());
}

TEST(DescriptionTest, RefusesRulesThatProtectNobody) {
  const std::string json = ToJson(UsualFleet());
  const auto error_of = [&](const std::string& what, const std::string& by) {
    const auto read = ParseDescription(Replaced(json, what, by));
    EXPECT_FALSE(read.has_value()) << by;
    return read.has_value() ? "" : read.error().message;
  };
  EXPECT_THAT(error_of("\"sigma\":3321", "\"sigma\":3320"), HasSubstr("'sigma'"));
  EXPECT_THAT(error_of("\"min_reports\":1000", "\"min_reports\":1"), HasSubstr("'min_reports'"));
  EXPECT_THAT(error_of("\"delta\":1e-09", "\"delta\":0.5"), HasSubstr("'delta'"));
  EXPECT_THAT(error_of("\"cohorts\":1", "\"cohorts\":0"), HasSubstr("'cohorts'"));
  EXPECT_THAT(error_of("decryptor 1", "decryptor 0"), HasSubstr("there twice"));
  EXPECT_THAT(error_of("\"name\":\"test\"", "\"name\":\"test\",\"more\":1"), HasSubstr("doesn't know"));
  EXPECT_THAT(error_of("\"version\":1,\"name\"", "\"version\":2,\"name\""), HasSubstr("version 2"));
}

TEST(DescriptionTest, RefusesWhatIsNone) {
  for (const char* const text : {"", "{", "[]", "{}", R"({"version":1})"})
    EXPECT_EQ(ParseDescription(text).error().code, ErrorCode::kInvalidArgument) << text;
  const std::string json = ToJson(UsualFleet());
  const std::string open(500'000, '['), close(500'000, ']');
  const std::string deep = json.substr(0, json.find("\"catalog\":") + 10) + open + close + "}";
  EXPECT_THAT(ParseDescription(deep).error().message, HasSubstr("nests more than 512 levels"));
}

}  // namespace
}  // namespace gpusonde::fleet
