// SPDX-License-Identifier: Apache-2.0
#include "model/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "model/drops.h"

namespace gpusonde::model {
namespace {

TEST(Schema, TablesAreSortedAndUniqueAndDocumented) {
  std::string_view previous;
  for (const TableInfo& table : AllTables()) {
    EXPECT_LT(previous, table.name);
    previous = table.name;
    EXPECT_FALSE(table.meaning.empty()) << table.name;
    EXPECT_LE(table.key_columns, static_cast<int>(table.columns.size())) << table.name;
    std::set<std::string_view> names;
    for (const ColumnInfo& column : table.columns) {
      EXPECT_TRUE(names.insert(column.name).second) << table.name << "." << column.name;
      EXPECT_FALSE(column.meaning.empty()) << table.name << "." << column.name;
      EXPECT_FALSE(column.meaning.ends_with('.')) << table.name << "." << column.name;
    }
  }
}

TEST(Schema, ColumnsThatEndInNanosecondsSayTheirUnit) {
  for (const TableInfo& table : AllTables())
    for (const ColumnInfo& column : table.columns)
      EXPECT_EQ(column.name.ends_with("_ns"), column.unit == "ns") << table.name << "." << column.name;
}

TEST(Schema, KeyColumnsAreNeverNull) {
  for (const TableInfo& table : AllTables())
    for (int i = 0; i < table.key_columns; ++i)
      EXPECT_FALSE(table.columns[static_cast<size_t>(i)].nullable) << table.name;
}

TEST(Schema, FindTableKnowsItsTablesOnly) {
  ASSERT_NE(FindTable("samples"), nullptr);
  EXPECT_EQ(FindTable("samples")->name, "samples");
  EXPECT_EQ(FindTable("sample"), nullptr);
}

TEST(DropReasons, AreDeclaredInTheOrderOfTheirEnum) {
  for (size_t i = 0; i < kDropReasons.size(); ++i) EXPECT_EQ(static_cast<size_t>(kDropReasons[i].reason), i);
}

}  // namespace
}  // namespace gpusonde::model
