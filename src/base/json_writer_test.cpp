// SPDX-License-Identifier: Apache-2.0
#include "base/json_writer.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

namespace gpusonde {
namespace {

TEST(JsonWriter, WritesObjectsAndArraysWithTheirCommas) {
  JsonWriter json;
  json.BeginObject().Field("a", 1).Key("b").BeginArray().EndArray().Key("c").BeginArray();
  json.BeginObject().EndObject().Value(true).Value("x").EndArray();
  json.Field("d", std::optional<int64_t>()).Field("e", std::optional<int64_t>(2)).EndObject();
  EXPECT_EQ(json.Take(), R"({"a":1,"b":[],"c":[{},true,"x"],"d":null,"e":2})");
}

TEST(JsonWriter, WritesColumnsOfWholeNumbers) {
  JsonWriter json;
  const std::array<int64_t, 3> values = {std::numeric_limits<int64_t>::min(), 0,
                                         std::numeric_limits<int64_t>::max()};
  json.BeginObject().Column("v", values).Column("w", std::span<const int32_t>()).EndObject();
  EXPECT_EQ(json.Take(), R"({"v":[-9223372036854775808,0,9223372036854775807],"w":[]})");
}

TEST(JsonWriter, FloatingPointRoundTripsAndIsNullWhenNotFinite) {
  JsonWriter json;
  json.BeginArray().Value(0.1).Value(1e300).Value(-2.0).Value(std::nan("")).Value(INFINITY).EndArray();
  const std::string text = json.Take();
  EXPECT_EQ(nlohmann::json::parse(text), nlohmann::json({0.1, 1e300, -2.0, nullptr, nullptr})) << text;
}

TEST(JsonWriter, QuotesBackslashesAndControlsAreEscaped) {
  JsonWriter json;
  json.Value(std::string_view("a\"b\\c\n\0\x1f\x7f/é\xC2\x9B", 14));
  EXPECT_EQ(json.Take(), "\"a\\\"b\\\\c\\u000a\\u0000\\u001f\\u007f/é\\u009b\"");
}

TEST(JsonWriter, ReplacesInvalidUtf8) {
  JsonWriter json;
  json.BeginObject().Field("k\xFF", "a\xC3(\xE2\x82").EndObject();
  EXPECT_EQ(json.Take(), "{\"k\uFFFD\":\"a\uFFFD(\uFFFD\"}");
}

TEST(JsonWriter, WritesValidJsonForAnyBytes) {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes(random() % 12, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    JsonWriter json;
    json.Value(bytes);
    const std::string text = json.Take();
    EXPECT_NO_THROW({ EXPECT_TRUE(nlohmann::json::parse(text).is_string()); }) << text;
  }
}

}  // namespace
}  // namespace gpusonde
