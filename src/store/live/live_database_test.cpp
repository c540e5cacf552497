// SPDX-License-Identifier: Apache-2.0
#include "store/live/live_database.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/testing/temp_folder.h"

namespace gpusonde::store {
namespace {

// Two instances over one file would both write to it. The last query over a retired instance closes it, which
// takes a while if there is a long log.
TEST(LiveDatabase, OpensOnceTheRetiredInstanceIsClosed) {
  const TempFolder folder;
  const std::string file = folder / "day.sonde";
  LiveDatabase database(folder.path(), 0, false);
  ASSERT_TRUE(database.Open().has_value());
  duckdb::Connection& writer = database.writer();
  ASSERT_TRUE(writer.Run(fmt::format("ATTACH {} AS day", duckdb::QuoteText(file))).has_value());
  ASSERT_TRUE(writer.Run("CREATE TABLE day.numbers (number BIGINT)").has_value());
  // Fewer rows at a time than DuckDB would write to the file at once, and less in all than kLogBytes.
  for (int i = 0; i < 25; ++i)
    ASSERT_TRUE(writer.Run("INSERT INTO day.numbers SELECT hash(range) >> 1 FROM range(100000)").has_value());
  ASSERT_TRUE(std::filesystem::exists(file + ".wal"));

  std::shared_ptr<duckdb::Instance> query = database.instance();
  database.Retire();
  const Status refused = database.Open();
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
  std::thread closing([query = std::move(query)]() mutable { query.reset(); });
  while (!database.Open().has_value()) std::this_thread::yield();
  EXPECT_FALSE(std::filesystem::exists(file + ".wal")) << "the retired instance still writes its log";
  closing.join();
}

}  // namespace
}  // namespace gpusonde::store
