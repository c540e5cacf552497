// SPDX-License-Identifier: Apache-2.0
#include "convert/needed_events.h"

#include <gtest/gtest.h>

#include <string>

#include "model/schema.h"

namespace gpusonde::convert {
namespace {

TEST(NeedsOnlyGpuWork, OfStatementsThatNameNoOtherTable) {
  for (const char* const sql : {
           "SELECT name, sum(end_ns - start_ns) FROM kernels GROUP BY name ORDER BY 2 DESC LIMIT 10",
           "select count(*) from raw.KERNELS join \"devices\" using (device)",
           "WITH work AS (FROM memcpys) SELECT * FROM work, memsets, recording0.main.syncs",
           "SELECT 1",
       })
    EXPECT_TRUE(NeedsOnlyGpuWork(sql)) << sql;
}

TEST(NeedsOnlyGpuWork, NotOfThoseThatReadOtherTablesByAnyName) {
  for (const char* const sql : {
           "SELECT * FROM kernels JOIN api_calls USING (process, correlation)",
           "SELECT * FROM kernels, \"Processes\"",
           "SELECT * FROM raw.ranges",
           "FROM query_table('ker' || 'nels')",
           "FROM query('SELECT 1')",
           "SHOW TABLES",
           "DESCRIBE kernels",
           "SUMMARIZE kernels",
           "SELECT estimated_size FROM duckdb_tables()",
           "SELECT table_name FROM information_schema.tables",
           "PRAGMA table_info('kernels')",
       })
    EXPECT_FALSE(NeedsOnlyGpuWork(sql)) << sql;
}

TEST(NeedsOnlyGpuWork, OfNoTableOfThreads) {
  int full = 0;
  for (const model::TableInfo& table : model::AllTables())
    full += NeedsOnlyGpuWork("SELECT * FROM " + std::string(table.name)) ? 0 : 1;
  EXPECT_EQ(full, static_cast<int>(model::AllTables().size()) - 5);
}

}  // namespace
}  // namespace gpusonde::convert
