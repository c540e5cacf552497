// SPDX-License-Identifier: Apache-2.0
#include "server/sql_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gpusonde::server {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(LimitedSql, IsASubqueryUnlessItCannotBe) {
  EXPECT_EQ(LimitedSql(" SELECT 1; ", 7), "SELECT * FROM (SELECT 1\n) LIMIT 7");
  EXPECT_EQ(LimitedSql("SELECT 1 -- one", 7), "SELECT * FROM (SELECT 1 -- one\n) LIMIT 7");
  EXPECT_EQ(LimitedSql("explain SELECT 1", 7), "explain SELECT 1");
  EXPECT_EQ(LimitedSql(" ; ", 7), "");
}

TEST(SqlAnswer, IsReadAsRows) {
  const auto answer = ParseSqlAnswer(
      R"({"columns":[{"name":"host","type":"VARCHAR"},{"name":"n","type":"BIGINT"}],
          "rows":[["one",7],["two",null]],"more":true,"hosts":2,"errors":[{"host":"three","message":"full"}]})");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_TRUE(answer->more);
  EXPECT_THAT(answer->errors, ElementsAre(Pair("three", "full")));
  store::Rows& rows = *answer->rows;
  EXPECT_EQ(rows.columns()[1].type, "BIGINT");
  ASSERT_TRUE(rows.Next().value());
  EXPECT_EQ(rows.Text(0), "one");
  EXPECT_EQ(rows.Int64(1), 7);
  EXPECT_EQ(rows.Display(1), "7");
  ASSERT_TRUE(rows.Next().value());
  EXPECT_TRUE(rows.IsNull(1));
  EXPECT_EQ(rows.Display(1), "NULL");
  EXPECT_EQ(rows.Json(0), "\"two\"");
  EXPECT_FALSE(rows.Next().value());
}

TEST(SqlAnswer, OfAnotherServerIsRefused) {
  for (const char* other :
       {"", "{}", "[]", "{\"columns\":7}",
        R"({"columns":[{"name":"host","type":"VARCHAR"}],"rows":[[]],"more":false,"errors":[]})",
        R"({"columns":[],"rows":{"a":1},"more":false,"errors":[]})"})
    EXPECT_EQ(ParseSqlAnswer(other).error().code, ErrorCode::kCorrupt) << other;
}

TEST(SqlAnswer, ThatNestsDeeperThanTheStackAllowsIsRefused) {
  const std::string deep = std::string(500'000, '[') + std::string(500'000, ']');
  EXPECT_EQ(ParseSqlAnswer(R"({"columns":[{"name":"a","type":"B"}],"rows":[[)" + deep +
                           R"(]],"more":false,"errors":[]})")
                .error()
                .code,
            ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::server
