// SPDX-License-Identifier: Apache-2.0
#include "mcp/answer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>

namespace gpusonde::mcp {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

json Finished(const json& found, int64_t max_elements = kDefaultElements) {
  return json::parse(FinishAnswer(found.dump(), max_elements));
}

TEST(McpAnswer, TextsAreEscapedAndShortenedHoweverDeepTheyLie) {
  const json answer =
      Finished({{"list", {{{"name", "a\x1b[2J\nb\u202e"}, {"long", std::string(2000, 'x')}}}}});
  EXPECT_EQ(answer["list"][0]["name"], "a\\x1b[2J\\x0ab\\u202e");
  EXPECT_EQ(answer["list"][0]["long"].get<std::string>().size(), kMaxTextCharacters - 1 + 3);
  EXPECT_THAT(answer["captured_text"].get<std::string>(), StartsWith("untrusted"));
}

TEST(McpAnswer, SoAreKeys) {
  const json texts = json::object({{std::string(2000, 'k'), 2}});
  const json answer = Finished({{"a\x7f", 1}, {"rows", json::array({json::object({{"b\x1b[31m", texts}})})}});
  EXPECT_EQ(answer["a\\x7f"], 1);
  const json& row = answer["rows"][0];
  EXPECT_EQ(row.begin().key(), "b\\x1b[31m");
  EXPECT_EQ(row.begin()->begin().key().size(), kMaxTextCharacters - 1 + 3);
}

TEST(McpAnswer, ListsAreCutToTheLimitAndTheRestIsCounted) {
  const json found = {
      {"rows", json::array({1, 2, 3, 4, 5})}, {"other", json::array({1})}, {"omitted", {{"rows", 211}}}};
  const json answer = Finished(found, 2);
  EXPECT_EQ(answer["rows"].size(), 2U);
  EXPECT_THAT(answer["cut"], ElementsAre("rows: … 214 more"));
  EXPECT_FALSE(answer.contains("omitted"));
  EXPECT_TRUE(Finished({{"rows", json::array({1, 2})}}, 2)["cut"].empty());
}

TEST(McpAnswer, MoreThanCanBeCountedIsTheLargestCount) {
  const json found = {{"rows", json::array({1, 2, 3})}, {"omitted", {{"rows", INT64_MAX - 1}}}};
  EXPECT_THAT(Finished(found, 1)["cut"], ElementsAre(fmt::format("rows: … {} more", INT64_MAX)));
}

TEST(McpAnswer, WhatWasNotAllCountedSaysSo) {
  const json found = {{"rows", json::array()}, {"omitted", {{"rows", 10000}}}, {"uncounted", "rows"}};
  EXPECT_THAT(Finished(found)["cut"], ElementsAre("rows: … at least 10000 more"));
}

TEST(McpAnswer, IsBoundedHoweverMuchWasFound) {
  json found = {{"small", json::array({"kept"})}, {"large", json::array()}};
  for (int i = 0; i < 500; ++i) found["large"].push_back(std::string(300, 'x'));
  const std::string text = FinishAnswer(found.dump(), 500);
  EXPECT_LE(text.size(), kMaxAnswerBytes + 200);
  const json answer = json::parse(text);
  const size_t kept = answer["large"].size();
  EXPECT_GT(kept, 20U);
  EXPECT_EQ(answer["small"].size(), 1U);
  EXPECT_THAT(answer["cut"], ElementsAre("large: … " + std::to_string(500 - kept) + " more"));
}

TEST(McpAnswer, WhatCannotBeCutIsAnError) {
  json found;
  for (int i = 0; i < 200; ++i) found["key" + std::to_string(i)] = std::string(300, 'x');
  EXPECT_THAT(Finished(found)["error"].get<std::string>(), HasSubstr("too large"));
}

TEST(McpAnswer, WhatNestsDeeperThanTheStackAllowsIsAnError) {
  const std::string deep = R"({"value":)" + std::string(500'000, '[') + std::string(500'000, ']') + "}";
  EXPECT_THAT(json::parse(FinishAnswer(deep, 10))["error"].get<std::string>(), HasSubstr("more than 512"));
}

TEST(McpAnswer, ErrorsKeepTheirLinesButNoOtherControls) {
  const json answer = json::parse(ErrorAnswer("LINE 1: \x1b[2J\n   ^"));
  EXPECT_EQ(answer["error"], "LINE 1: \\x1b[2J\n   ^");
  EXPECT_THAT(answer["captured_text"].get<std::string>(), StartsWith("untrusted"));
}

}  // namespace
}  // namespace gpusonde::mcp
