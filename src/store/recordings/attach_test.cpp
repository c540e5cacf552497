// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/attach.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "base/testing/temp_folder.h"

namespace gpusonde::store {
namespace {

// Adds rows to a table of the catalog and returns how many row groups the table then has in its file.
int64_t RowGroupsWithMore(duckdb::Connection& connection, int64_t rows) {
  const auto run = [&](const std::string& sql) {
    const Status done = connection.Run(sql);
    EXPECT_TRUE(done.has_value()) << done.error().message;
  };
  run("CREATE TABLE IF NOT EXISTS day.main.numbers (number BIGINT)");
  run("INSERT INTO day.main.numbers SELECT range FROM range(" + std::to_string(rows) + ")");
  run("CHECKPOINT day");
  const auto groups =
      connection.Ask("SELECT count(DISTINCT row_group_id) FROM pragma_storage_info('day.main.numbers')");
  return groups.has_value() && (*groups)->Next().value_or(false) ? (*groups)->Int64(0) : 0;
}

TEST(Attach, AFileThatIsAddedToHasSmallRowGroups) {
  const TempFolder folder;
  const std::string path = folder / "day.sonde";
  auto connection = duckdb::Connection::Open(duckdb::Instance::Create({}).value()).value();
  ASSERT_TRUE(AttachNew(connection, path, "day").has_value());
  EXPECT_EQ(RowGroupsWithMore(connection, 40'000), 3);
  ASSERT_TRUE(connection.Run("DETACH day").has_value());
  ASSERT_TRUE(AttachRecording(connection, path, "day", Access::kWriting).has_value());
  EXPECT_EQ(RowGroupsWithMore(connection, 40'000), 5) << "opened again";
}

}  // namespace
}  // namespace gpusonde::store
