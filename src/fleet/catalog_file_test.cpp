// SPDX-License-Identifier: Apache-2.0
#include "fleet/catalog_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gpusonde::fleet {
namespace {

using testing::HasSubstr;

Catalog TwoApplications() {
  Catalog catalog;
  for (const char* const name : {"llama", "resnet \"50\""}) {
    Catalog::Application& added = catalog.applications.emplace_back(Catalog::Application{.name = name});
    added.fingerprint.front() = -700;
    added.fingerprint.back() = 150;
  }
  return catalog;
}

TEST(CatalogFileTest, ReadsWhatItWrote) {
  const auto read = ParseCatalog(ToJson(TwoApplications()));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  ASSERT_EQ(read->applications.size(), 2u);
  EXPECT_EQ(read->applications[1].name, "resnet \"50\"");
  EXPECT_EQ(read->applications[1].fingerprint, TwoApplications().applications[1].fingerprint);
}

TEST(CatalogFileTest, RefusesAFingerprintWhoseScoresCouldOverflow) {
  Catalog catalog = TwoApplications();
  catalog.applications[0].fingerprint.back() = 700;
  EXPECT_THAT(ParseCatalog(ToJson(catalog)).error().message, HasSubstr("fingerprint of llama is longer"));
  catalog.applications[0].fingerprint.back() = 20000;
  EXPECT_THAT(ParseCatalog(ToJson(catalog)).error().message, HasSubstr("of llama has number 20000"));
}

TEST(CatalogFileTest, RefusesWhatIsNoCatalog) {
  for (const std::string text :
       {"", "[", "[]", "{}", R"({"version":1})", R"({"version":1,"applications":{}})",
        R"({"version":1,"applications":[]})", R"({"version":1,"applications":[{"name":"a"}]})",
        R"({"version":1,"applications":[{"name":"a","fingerprint":[1]}]})"})
    EXPECT_EQ(ParseCatalog(text).error().code, ErrorCode::kInvalidArgument) << text;
  EXPECT_EQ(ParseCatalog(R"({"version":2})").error().code, ErrorCode::kTooNew);
  const std::string open(500'000, '['), close(500'000, ']');
  const std::string deep =
      R"({"version":1,"applications":[{"name":"a","fingerprint":[)" + open + close + "]}]}";
  EXPECT_THAT(ParseCatalog(deep).error().message, HasSubstr("nests more than 512 levels"));
  Catalog twice = TwoApplications();
  twice.applications[1].name = "llama";
  EXPECT_THAT(ParseCatalog(ToJson(twice)).error().message, HasSubstr("llama is there twice"));
}

}  // namespace
}  // namespace gpusonde::fleet
