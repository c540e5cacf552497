// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/statement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "store/duckdb/connection.h"

namespace gpusonde::store::duckdb {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Statement, NumbersAndIdsBecomeConstantsAndTheRestStaysInItsOrder) {
  const std::vector<Parameter> parameters = {int64_t{-5}, std::string("it's ?"), Id128{1, 2}, 0.1,
                                             std::vector<Id128>{}};
  const Statement statement = WithConstants("SELECT ?, ?, ?, ?, ?", parameters);
  EXPECT_EQ(statement.sql,
            "SELECT '-5'::BIGINT, ?, '00000000000000010000000000000002'::UUID, '0.1'::DOUBLE, ?");
  EXPECT_THAT(statement.parameters, ElementsAre(parameters[1], parameters[4]));
}

TEST(Statement, QuestionMarksInTextsNamesAndCommentsAreLeft) {
  const std::vector<Parameter> one = {int64_t{1}};
  for (const std::string before :
       {"SELECT 'it''s ?' AS \"a\"\"?\", ", "SELECT -- ?\n", "SELECT /* ? */ 2 - 1 / 1, "}) {
    const Statement statement = WithConstants(before + "? AS b", one);
    EXPECT_EQ(statement.sql, before + "'1'::BIGINT AS b");
    EXPECT_THAT(statement.parameters, IsEmpty());
  }
  for (const std::string unfinished : {"SELECT ?, 'x ?", "SELECT ?, \"x ?", "SELECT ? -- ?", "SELECT ? /* ?"})
    EXPECT_EQ(WithConstants(unfinished, one).sql, "SELECT '1'::BIGINT" + unfinished.substr(8));
}

TEST(Statement, WithNumberedPlaceholdersAndTooFewOrTooManyNothingChanges) {
  const std::vector<Parameter> two = {int64_t{1}, int64_t{2}};
  for (const std::string sql : {"SELECT 1", "SELECT ?", "SELECT ?, ?, ?", "SELECT ?2, ?1"}) {
    const Statement statement = WithConstants(sql, two);
    EXPECT_EQ(statement.sql, sql);
    EXPECT_EQ(statement.parameters, two);
  }
}

TEST(Statement, OfAnExplainIsKnownWhatItExplains) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"EXPLAIN SELECT 1", "SELECT 1"},
      {" \n explain\tAnalyze\n(SELECT 1)", "(SELECT 1)"},
      {"EXPLAIN(SELECT 1)", "(SELECT 1)"},
      {"EXPLAIN (ANALYZE, FORMAT json) DELETE FROM t", " DELETE FROM t"},
      {"EXPLAIN ANALYZE DELETE FROM t", "DELETE FROM t"},
      {"EXPLAIN /* a */ SELECT 1", "/* a */ SELECT 1"},
      {"SELECT 1", ""},
      {"-- a\nEXPLAIN SELECT 1", ""},
      {"EXPLAIN-- a\nSELECT 1", ""},
      {"EXPLAINED SELECT 1", ""},
      {"EXPLAIN", ""},
  };
  for (const auto& [sql, explained] : cases) EXPECT_EQ(ExplainedBy(sql), explained) << sql;
}

// Constants are what parameters of these types were.
TEST(Statement, DuckDbReadsConstantsToTheBit) {
  const auto instance = Instance::Create({});
  ASSERT_TRUE(instance.has_value()) << instance.error().message;
  Connection connection = Connection::Open(*instance).value();
  using Limits = std::numeric_limits<int64_t>;
  const std::vector<Parameter> parameters = {
      Limits::min(), Limits::max(), Id128{0x8000000000000000, 1},
      0.1 + 0.2,     5e-324,        -std::numeric_limits<double>::infinity(),
      int64_t{7}};
  const auto rows = connection.Ask(
      "SELECT *, typeof(low), typeof(id), typeof(sum), sum(number) OVER () FROM (SELECT ? AS low, ? AS high, "
      "? AS id, "
      "? AS sum, ? AS least, ? AS infinite, 1 AS number) LIMIT ?",
      parameters);
  ASSERT_TRUE(rows.has_value()) << rows.error().message;
  ASSERT_TRUE((*rows)->Next().value_or(false));
  EXPECT_EQ((*rows)->Int64(0), Limits::min());
  EXPECT_EQ((*rows)->Int64(1), Limits::max());
  EXPECT_EQ((*rows)->Id(2), (Id128{0x8000000000000000, 1}));
  EXPECT_EQ((*rows)->Float64(3), 0.1 + 0.2);
  EXPECT_EQ((*rows)->Float64(4), 5e-324);
  EXPECT_EQ((*rows)->Float64(5), -std::numeric_limits<double>::infinity());
  EXPECT_EQ((*rows)->Text(7), "BIGINT");
  EXPECT_EQ((*rows)->Text(8), "UUID");
  EXPECT_EQ((*rows)->Text(9), "DOUBLE");
}

}  // namespace
}  // namespace gpusonde::store::duckdb
