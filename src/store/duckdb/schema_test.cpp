// SPDX-License-Identifier: Apache-2.0
#include "store/duckdb/schema.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "model/schema.h"
#include "store/duckdb/testing/memory_connection.h"

namespace gpusonde::store::duckdb {
namespace {

std::string AnswerOf(Connection& connection, const std::string& sql) {
  auto rows = connection.Ask(sql);
  if (!rows.has_value()) return rows.error().message;
  const Result<bool> more = (*rows)->Next();
  if (!more.has_value()) return more.error().message;
  return *more ? (*rows)->Display(0) : "";
}

class DuckDbSchema : public MemoryConnectionTest {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(MemoryConnectionTest::SetUp());
    Run("ATTACH ':memory:' AS file");
  }
  void Run(const std::string& sql) {
    const Status done = connection_->Run(sql);
    ASSERT_TRUE(done.has_value()) << sql << ": " << done.error().message;
  }
};

TEST_F(DuckDbSchema, TablesCarryMeaningAndUnits) {
  ASSERT_TRUE(CreateTables(*connection_, "file").has_value());
  EXPECT_EQ(AnswerOf(*connection_,
                     "SELECT comment[:18] FROM duckdb_tables() WHERE database_name = 'file' AND "
                     "table_name = 'threads'"),
            "One row per thread");
  EXPECT_EQ(AnswerOf(*connection_,
                     "SELECT comment LIKE '%\ntime_ns: time of the sample; for a wait, its end [ns]\n%' FROM "
                     "duckdb_tables() "
                     "WHERE database_name = 'file' AND table_name = 'samples'"),
            "true");
  EXPECT_EQ(ReadVersion(*connection_, "file").value(), model::kSchemaVersion);
}

// What a file of an older version looks like: a table and columns are missing, rows are there.
TEST_F(DuckDbSchema, AnOlderFileIsReadAndThenBroughtUpToDate) {
  Run("CREATE TABLE file.meta (key VARCHAR, value VARCHAR)");
  Run("INSERT INTO file.meta VALUES ('schema_version', '1')");
  Run("CREATE TABLE file.threads (process UUID, tid INTEGER)");
  Run("INSERT INTO file.threads VALUES ('00000000-0000-0000-0000-000000000001', 7)");
  Run("CREATE TABLE file.processes (process UUID NOT NULL, user_id INTEGER NOT NULL)");

  ASSERT_TRUE(CreateViews(*connection_, std::vector<std::string>{"file"}).has_value());
  EXPECT_EQ(AnswerOf(*connection_, "SELECT tid FROM threads WHERE name = '' AND started_ns IS NULL"), "7");
  EXPECT_EQ(AnswerOf(*connection_, "SELECT count(*) FROM samples"), "0");

  Run("UPDATE file.meta SET value = 'from before versions'");
  ASSERT_TRUE(CreateTables(*connection_, "file").has_value());
  EXPECT_EQ(AnswerOf(*connection_, "SELECT tid FROM file.threads WHERE name = '' AND exited_ns IS NULL"),
            "7");
  EXPECT_EQ(AnswerOf(*connection_, "SELECT count(*) FROM file.samples"), "0");
  EXPECT_EQ(AnswerOf(*connection_,
                     "SELECT is_nullable FROM duckdb_columns() WHERE database_name = 'file' AND table_name = "
                     "'processes' AND column_name = 'user_id'"),
            "true");
  EXPECT_EQ(ReadVersion(*connection_, "file").value(), model::kSchemaVersion);
}

TEST_F(DuckDbSchema, ForeignAndNewerDatabasesAreRejected) {
  EXPECT_EQ(ReadVersion(*connection_, "file").error().code, ErrorCode::kCorrupt);
  Run("CREATE TABLE file.meta (key VARCHAR, value VARCHAR)");
  EXPECT_EQ(ReadVersion(*connection_, "file").error().code, ErrorCode::kCorrupt);
  Run("INSERT INTO file.meta VALUES ('schema_version', '999')");
  EXPECT_EQ(ReadVersion(*connection_, "file").error().code, ErrorCode::kTooNew);
  EXPECT_EQ(CreateTables(*connection_, "file").error().code, ErrorCode::kTooNew);
}

TEST_F(DuckDbSchema, ViewsOverNoFileAreEmpty) {
  ASSERT_TRUE(CreateViews(*connection_, {}).has_value());
  EXPECT_EQ(AnswerOf(*connection_, "SELECT count(*) FROM samples JOIN threads USING (process)"), "0");
}

TEST(Quote, DoublesTheQuoteInside) {
  EXPECT_EQ(QuoteText("it's"), "'it''s'");
  EXPECT_EQ(QuoteName("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace gpusonde::store::duckdb
