// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>

#include "base/testing/temp_folder.h"
#include "model/schema.h"
#include "model/tables/locations.h"
#include "model/tables/metrics.h"
#include "model/tables/samples.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "model/testing/random_batch.h"
#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

using model::Batch;
using model::BatchBuilder;
using model::ColumnData;
using model::ColumnType;

std::unique_ptr<Store> MemoryStore() {
  auto store = CreateInMemory();
  EXPECT_TRUE(store.has_value()) << store.error().message;
  return std::move(store).value();
}

// The answer of a query as text, "a|b;c|d"; or the error's message.
std::string TableOf(Store& store, const std::string& sql, std::span<const Parameter> parameters = {}) {
  auto rows = store.Query(sql, parameters);
  if (!rows.has_value()) return rows.error().message;
  std::string answer;
  while (true) {
    const Result<bool> more = (*rows)->Next();
    if (!more.has_value()) return more.error().message;
    if (!*more) return answer;
    if (!answer.empty()) answer += ";";
    for (size_t i = 0; i < (*rows)->columns().size(); ++i)
      answer += (i == 0 ? "" : "|") + (*rows)->Display(i);
  }
}

Batch Threads(std::initializer_list<model::Thread> rows) {
  BatchBuilder builder(model::kThreads);
  for (const model::Thread& row : rows) builder.Append(row);
  return builder.Take();
}

// One value of a batch as the store displays it.
std::string Expected(const ColumnData& column, size_t row) {
  if (!column.valid.empty() && column.valid[row] == 0) return "NULL";
  const auto read = [&]<class T>(size_t index, T value) {
    std::memcpy(&value, column.values.data() + index * sizeof(T), sizeof(T));
    return value;
  };
  const auto id = [&](size_t index) { return read(index, Id128{}).ToHex(); };
  const auto begin = [&] { return row == 0 ? size_t{0} : size_t{column.ends[row - 1]}; };
  const auto list = [&](auto&& element) {
    std::string joined = "[";
    for (size_t i = begin(); i < column.ends[row]; ++i) joined += (i == begin() ? "" : ", ") + element(i);
    return joined + "]";
  };
  switch (column.type) {
    case ColumnType::kBool:
      return read(row, uint8_t{}) != 0 ? "true" : "false";
    case ColumnType::kInt32:
      return std::to_string(read(row, int32_t{}));
    case ColumnType::kInt64:
      return std::to_string(read(row, int64_t{}));
    case ColumnType::kFloat64:
      return fmt::to_string(read(row, double{}));
    case ColumnType::kText:
      return {reinterpret_cast<const char*>(column.values.data()) + begin(), column.ends[row] - begin()};
    case ColumnType::kId128:
      return id(row);
    case ColumnType::kIdList:
      return list(id);
    case ColumnType::kInt64List:
      return list([&](size_t index) { return std::to_string(read(index, int64_t{})); });
  }
  return "?";
}

TEST(Store, EveryTableGivesBackWhatWasAppended) {
  const auto store = MemoryStore();
  std::mt19937_64 random(1);
  for (const model::TableInfo& table : model::AllTables()) {
    if (table.name == "meta") continue;  // has rows of its own
    // More than two of DuckDB's vectors, so that offsets inside a batch are exercised.
    const Batch batch = model::RandomBatch(table, 5000, random);
    const Status appended = store->Append({{batch}});
    ASSERT_TRUE(appended.has_value()) << table.name << ": " << appended.error().message;
    auto rows = store->Query("SELECT * FROM raw." + std::string(table.name)).value();
    ASSERT_EQ(rows->columns().size(), table.columns.size()) << table.name;
    for (size_t row = 0; row < batch.rows; ++row) {
      ASSERT_TRUE(rows->Next().value()) << table.name << " row " << row;
      for (size_t i = 0; i < batch.columns.size(); ++i)
        ASSERT_EQ(rows->Display(i), Expected(batch.columns[i], row))
            << table.name << "." << batch.columns[i].name;
    }
    EXPECT_FALSE(rows->Next().value()) << table.name;
  }
}

TEST(Store, ALaterRowReplacesTheEarlierOneWithItsKey) {
  const auto store = MemoryStore();
  ASSERT_TRUE(store->Append({{Threads({{{1, 1}, 7, "old"}, {{1, 1}, 8, "other"}})}}).has_value());
  ASSERT_TRUE(store
                  ->Append({{Threads({{{1, 1}, 7, "new"}, {{1, 1}, 7, "newest"}}),
                             Threads({{{2, 1}, 7, "of another process"}})}})
                  .has_value());
  EXPECT_EQ(TableOf(*store, "SELECT name FROM threads ORDER BY process, tid"),
            "newest;other;of another process");
}

// Rows keyed by an id alone take another way while no key comes twice.
TEST(Store, OfATableKeyedByAnIdToo) {
  const auto store = MemoryStore();
  const auto stack = [](const std::vector<model::Stack>& rows) {
    model::BatchBuilder builder(model::kStacks);
    for (const model::Stack& row : rows) builder.Append(row);
    return builder.Take();
  };
  ASSERT_TRUE(store->Append({{stack({{{1, 1}, {}}, {{1, 2}, {}}})}}).has_value());
  ASSERT_TRUE(store->Append({{stack({{{1, 2}, {{7, 7}}}}), stack({{{1, 3}, {}}})}}).has_value());
  EXPECT_EQ(TableOf(*store, "SELECT len(locations)::VARCHAR FROM stacks ORDER BY stack"), "0;1;0");
  ASSERT_TRUE(store
                  ->Append({{stack({{{1, 3}, {{7, 7}}}, {{1, 4}, {}}}),
                             stack({{{1, 3}, {{7, 7}, {7, 8}}}, {{1, 1}, {{7, 7}}}})}})
                  .has_value());
  EXPECT_EQ(TableOf(*store, "SELECT len(locations)::VARCHAR FROM stacks ORDER BY stack"), "1;1;2;0");
}

TEST(Store, ABatchWithoutRowsAddsNone) {
  const auto store = MemoryStore();
  for (const model::TableInfo& table : model::AllTables()) {
    std::mt19937_64 random(1);
    const Status appended = store->Append({{model::RandomBatch(table, 0, random)}});
    EXPECT_TRUE(appended.has_value()) << table.name << ": " << appended.error().message;
  }
  EXPECT_EQ(TableOf(*store, "SELECT count(*) FROM stacks"), "0");
}

TEST(Store, AnAppendIsWholeOrNothing) {
  const auto store = MemoryStore();
  Batch broken = Threads({{{1, 1}, 7, "x"}});
  broken.columns[1].values.pop_back();
  BatchBuilder samples(model::kSamples);
  samples.Append({.time_ns = 1});
  EXPECT_EQ(store->Append({{samples.Take(), broken}}).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(TableOf(*store, "SELECT count(*) FROM samples"), "0");
  ASSERT_TRUE(store->Append({{Threads({{{1, 1}, 7, "x"}})}}).has_value())
      << "the store goes on after an error";
}

TEST(Store, UnknownColumnsAndTablesAreIgnoredAndMissingColumnsAreEmpty) {
  const auto store = MemoryStore();
  Batch batch = Threads({{{1, 1}, 7, "x", 5, 6}});
  batch.columns[2].name = "nickname";  // so `name` is missing
  batch.columns.pop_back();            // so is exited_ns
  Batch foreign = Threads({{{1, 1}, 7, "x"}});
  foreign.table = "of_the_future";
  ASSERT_TRUE(store->Append({{batch, foreign}}).has_value());
  EXPECT_EQ(TableOf(*store, "SELECT tid, name = '', started_ns, exited_ns FROM threads"), "7|true|5|NULL");
}

TEST(Store, AColumnOfAnotherTypeIsRefused) {
  const auto store = MemoryStore();
  Batch batch = Threads({{{1, 1}, 7, "x"}});
  std::swap(batch.columns[1].name, batch.columns[2].name);
  EXPECT_EQ(store->Append({{batch}}).error().code, ErrorCode::kCorrupt);
}

TEST(Store, TextThatIsNotUtf8IsShownWithReplacements) {
  const auto store = MemoryStore();
  ASSERT_TRUE(store
                  ->Append({{Threads({{{1, 1}, 1, "a\xFFz"},
                                      {{1, 1}, 2, "\xED\xA0\x80 a surrogate, cut: \xE2\x82"},
                                      {{1, 1}, 3, "grüße, длинный текст"},
                                      {{1, 1}, 4, std::string("nul\0inside", 10)}})}})
                  .has_value());
  EXPECT_EQ(TableOf(*store, "SELECT name FROM threads ORDER BY tid"),
            "a\uFFFDz;\uFFFD\uFFFD\uFFFD a surrogate, cut: \uFFFD;grüße, длинный текст;" +
                std::string("nul\0inside", 10));
}

TEST(Store, BoolsFromOutsideAreZeroOrOne) {
  const auto store = MemoryStore();
  std::mt19937_64 random(1);
  Batch devices = model::RandomBatch(*model::FindTable("devices"), 2, random);
  devices.columns[5].values = {std::byte{0xFF}, std::byte{0}};
  ASSERT_TRUE(store->Append({{devices}}).has_value());
  EXPECT_EQ(
      TableOf(*store,
              "SELECT count(*), count(*) FILTER (simulated), count(*) FILTER (NOT simulated) FROM devices"),
      "2|1|1");
}

TEST(Store, ParametersAreBoundByType) {
  const auto store = MemoryStore();
  const std::vector<Parameter> parameters = {int64_t{-5}, 2.5, std::string("it's"),
                                             Id128{0x8000000000000001, 0xF00000000000000F}};
  EXPECT_EQ(TableOf(*store, "SELECT ?, ?, ?, ?", parameters), "-5|2.5|it's|8000000000000001f00000000000000f");
}

TEST(Store, AnIdIsFoundByItsHexDigitsAndSortsUnsigned) {
  const auto store = MemoryStore();
  ASSERT_TRUE(
      store->Append({{Threads({{{0x8000000000000000, 1}, 1, "high"}, {{1, 1}, 2, "low"}})}}).has_value());
  EXPECT_EQ(TableOf(*store, "SELECT name FROM threads WHERE process = '80000000000000000000000000000001'"),
            "high");
  EXPECT_EQ(TableOf(*store, "SELECT process::VARCHAR FROM threads ORDER BY process DESC LIMIT 1"),
            "80000000-0000-0000-0000-000000000001");
  EXPECT_EQ(TableOf(*store, "SELECT name FROM threads ORDER BY process"), "low;high");
}

TEST(Store, WrongSqlSaysWhatIsWrong) {
  const auto store = MemoryStore();
  EXPECT_EQ(store->Query("SELECT nonsense FROM samples").error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(store->Query("SELECT nonsense FROM samples").error().message, testing::HasSubstr("nonsense"));
  EXPECT_EQ(store->Query("").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store->Query("SELECT ?").error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(store->Query("SELECT 1; SELECT 2").error().code, ErrorCode::kInvalidArgument);
}

TEST(Store, OnlyReadingStatementsAreQueries) {
  const auto store = MemoryStore();
  ASSERT_TRUE(store->Append({{Threads({{{1, 1}, 1, "one"}})}}).has_value());
  for (const char* sql :
       {"DELETE FROM raw.samples", "CREATE TABLE t (a INT)", "DROP VIEW samples", "SET threads = 1",
        "COPY (SELECT 1) TO '/tmp/x.csv'", "ATTACH '/tmp/x'",
        "INSERT INTO recording.main.meta VALUES ('a','b')", "PRAGMA threads = 1", "CHECKPOINT", "BEGIN",
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1", "EXPLAIN ANALYZE DELETE FROM recording.main.threads",
        "explain\n(analyze, format json) DROP VIEW samples", "EXPLAIN /* a */ ANALYZE DROP VIEW samples",
        "/* a */ EXPLAIN ANALYZE DROP VIEW samples",
        "EXPLAIN ANALYZE /* /* */ SELECT 1 -- */\nDELETE FROM recording.main.threads",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '/tmp/x.csv'"})
    EXPECT_EQ(store->Query(sql).error().code, ErrorCode::kInvalidArgument) << sql;
  for (const char* sql : {"SHOW TABLES", "DESCRIBE samples", "SUMMARIZE samples", "EXPLAIN SELECT 1",
                          "EXPLAIN ANALYZE SELECT 1", "EXPLAIN (ANALYZE, FORMAT json) FROM samples",
                          "FROM samples", "VALUES (1)", "WITH a AS (SELECT 1) FROM a"})
    EXPECT_TRUE(store->Query(sql).has_value()) << sql;
  EXPECT_EQ(TableOf(*store, "SELECT count(*) FROM threads"), "1") << "nothing was deleted";
}

TEST(Store, QueriesCallNoFunctionThatChangesTheDatabase) {
  const auto store = MemoryStore();
  for (const char* sql :
       {"SELECT * FROM enable_logging('QueryLog', storage := 'file', storage_path := '/nowhere/else')",
        "SELECT * FROM system.main.\"ENABLE_LOGGING\"()", "FROM disable_logging()",
        "FROM query('FROM enable_lo' || 'gging()')", "EXPLAIN ANALYZE FROM truncate_duckdb_logs()",
        "WITH a AS MATERIALIZED (FROM force_checkpoint('recording')) SELECT (SELECT count(*) FROM a)",
        "FROM json_execute_serialized_sql(json_serialize_sql('SELECT 1'))"}) {
    const auto rows = store->Query(sql);
    ASSERT_FALSE(rows.has_value()) << sql;
    EXPECT_EQ(rows.error().code, ErrorCode::kInvalidArgument) << sql;
    EXPECT_THAT(rows.error().message, testing::HasSubstr("statements that read")) << sql;
  }
  for (const char* sql : {"SELECT 'checkpoint' FROM threads WHERE name = 'enable_logging'",
                          "FROM query('SELECT 1')", "EXPLAIN SELECT 'checkpoint'"})
    EXPECT_TRUE(store->Query(sql).has_value()) << sql;
}

TEST(Rows, EveryTypeIsDisplayed) {
  const auto store = MemoryStore();
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"NULL", "NULL"},
      {"true", "true"},
      {"(-128)::TINYINT", "-128"},
      {"255::UTINYINT", "255"},
      {"18446744073709551615::UBIGINT", "18446744073709551615"},
      {"(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"},
      {"340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"},
      {"0.1::DOUBLE", "0.1"},
      {"0.1::FLOAT", "0.1"},
      {"'nan'::DOUBLE", "nan"},
      {"12.340::DECIMAL(9,3)", "12.340"},
      {"(-0.01)::DECIMAL(38,2)", "-0.01"},
      {"DATE '2026-11-21'", "2026-11-21"},
      {"TIME '01:02:03.5'", "01:02:03.5"},
      {"TIMESTAMP '2026-11-21 01:02:03.000004'", "2026-11-21 01:02:03.000004"},
      {"make_timestamp_ns(1)", "1970-01-01 00:00:00.000000001"},
      {"INTERVAL 90 MINUTE", "01:30:00"},
      {"'\\xAA'::BLOB", "\\xAA"},
      {"'0101'::BIT", "0101"},
      {"'b'::ENUM('a', 'b')", "b"},
      {"[1, NULL, 3]", "[1, NULL, 3]"},
      {"[[1], []]", "[[1], []]"},
      {"array_value(1, 2)", "[1, 2]"},
      {"{a: 1, b: 'x'}", R"({"a": 1, "b": x})"},
      {"MAP {'k': 1}", "{k: 1}"},
      {"union_value(n := 5)", "5"},
      {"'00000000-0000-0001-0000-000000000002'::UUID", "00000000000000010000000000000002"},
  };
  for (const auto& [sql, shown] : cases) EXPECT_EQ(TableOf(*store, "SELECT " + sql), shown) << sql;
}

TEST(Rows, JsonKeepsTypes) {
  const auto store = MemoryStore();
  auto rows =
      store
          ->Query(
              R"(SELECT 9007199254740993, 0.5::DOUBLE, 'nan'::DOUBLE, true, NULL, 'say "ä"' || chr(10) || chr(1),
                             [1, 2], {a: 'x', b: [NULL]}, MAP {1: 'y'}, 1.50::DECIMAL(9,2), DATE '2026-11-21',
                             '00000000-0000-0001-0000-000000000002'::UUID)")
          .value();
  ASSERT_TRUE(rows->Next().value());
  std::vector<std::string> json;
  for (size_t i = 0; i < rows->columns().size(); ++i) json.push_back(rows->Json(i));
  EXPECT_THAT(
      json, testing::ElementsAre("9007199254740993", "0.5", "null", "true", "null", R"("say \"ä\"\n\u0001")",
                                 "[1, 2]", R"({"a": "x", "b": [null]})", R"({"1": "y"})", "1.50",
                                 "\"2026-11-21\"", "\"00000000000000010000000000000002\""));
}

TEST(Rows, NumbersAreConvertedOnlyWithoutLoss) {
  const auto store = MemoryStore();
  auto rows =
      store
          ->Query(
              "SELECT sum(x)::HUGEINT, 9223372036854775808::HUGEINT, 3::UTINYINT, 2.5::DECIMAL(9,1), 'x' "
              "FROM (VALUES (1), (2)) t(x)")
          .value();
  ASSERT_TRUE(rows->Next().value());
  EXPECT_EQ(rows->Int64(0), 3);
  EXPECT_EQ(rows->Int64(1), 0) << "too large";
  EXPECT_EQ(rows->Int64(2), 3);
  EXPECT_EQ(rows->Float64(3), 2.5);
  EXPECT_EQ(rows->Int64(4), 0) << "no number";
  EXPECT_TRUE(rows->Id(4).IsZero());
  EXPECT_TRUE(rows->IdList(4).empty());
}

TEST(Rows, AnErrorInTheMiddleOfAnAnswerIsReported) {
  const auto store = MemoryStore();
  auto rows =
      store->Query("SELECT CASE WHEN i = 50000 THEN error('too far') ELSE i END FROM range(100000) t(i)");
  Status status;
  while (rows.has_value() && status.has_value()) {
    const Result<bool> more = (*rows)->Next();
    if (!more.has_value()) status = Fail(more.error());
    if (more.has_value() && !*more) break;
  }
  if (!rows.has_value()) status = Fail(rows.error());
  ASSERT_FALSE(status.has_value());
  EXPECT_THAT(status.error().message, testing::HasSubstr("too far"));
}

TEST(Store, QueriesRunBesideAppends) {
  const auto store = MemoryStore();
  std::jthread writer([&] {
    for (int i = 0; i < 50; ++i) {
      BatchBuilder samples(model::kSamples);
      for (int row = 0; row < 100; ++row) samples.Append({.time_ns = i});
      ASSERT_TRUE(store->Append({{samples.Take()}}).has_value());
    }
  });
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i)
    readers.emplace_back([&] {
      int64_t seen = 0;
      while (seen < 5000) {
        auto rows = store->Query("SELECT count(*) FROM samples").value();
        ASSERT_TRUE(rows->Next().value());
        EXPECT_EQ(rows->Int64(0) % 100, 0) << "half an append was seen";
        EXPECT_GE(rows->Int64(0), seen);
        seen = rows->Int64(0);
      }
    });
}

}  // namespace
}  // namespace gpusonde::store
