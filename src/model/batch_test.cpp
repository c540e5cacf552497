// SPDX-License-Identifier: Apache-2.0
#include "model/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "model/tables/locations.h"
#include "model/tables/threads.h"

namespace gpusonde::model {
namespace {

template <class T>
std::vector<T> ValuesAs(const ColumnData& column) {
  std::vector<T> values(column.values.size() / sizeof(T));
  std::memcpy(values.data(), column.values.data(), column.values.size());
  return values;
}

TEST(BatchBuilder, RowsBecomeColumns) {
  BatchBuilder builder(kThreads);
  builder.Append({.process = {1, 2}, .tid = 7, .name = "loader", .started_ns = 5, .exited_ns = std::nullopt});
  builder.Append({.process = {1, 2}, .tid = 8, .name = "", .started_ns = std::nullopt, .exited_ns = 9});
  const Batch batch = builder.Take();

  ASSERT_TRUE(Validate(batch).has_value());
  EXPECT_EQ(batch.table, "threads");
  EXPECT_EQ(batch.rows, 2u);
  EXPECT_THAT(ValuesAs<int32_t>(batch.columns[1]), testing::ElementsAre(7, 8));
  EXPECT_THAT(batch.columns[2].ends, testing::ElementsAre(6, 6));
  EXPECT_THAT(batch.columns[3].valid, testing::ElementsAre(1, 0));
  EXPECT_THAT(batch.columns[4].valid, testing::ElementsAre(0, 1));
  EXPECT_THAT(ValuesAs<int64_t>(batch.columns[4]), testing::ElementsAre(0, 9));
  EXPECT_EQ(builder.rows(), 0u);
}

TEST(BatchBuilder, ListsEnumsAndIdsKeepTheirValues) {
  BatchBuilder builder(kLocations);
  builder.Append(
      {.location = {1, 1}, .kind = FrameKind::kKernel, .functions = {{3, 4}, {5, 6}}, .lines = {10, 20}});
  builder.Append({.location = {2, 2}, .kind = FrameKind::kNative, .functions = {}, .lines = {}});
  const Batch batch = builder.Take();

  ASSERT_TRUE(Validate(batch).has_value());
  EXPECT_THAT(ValuesAs<Id128>(batch.columns[0]), testing::ElementsAre(Id128{1, 1}, Id128{2, 2}));
  EXPECT_EQ(std::memcmp(batch.columns[1].values.data(), "kernelnative", 12), 0);
  EXPECT_THAT(batch.columns[4].ends, testing::ElementsAre(2, 2));
  EXPECT_THAT(ValuesAs<int64_t>(batch.columns[5]), testing::ElementsAre(10, 20));
}

TEST(Validate, FindsEveryInconsistency) {
  BatchBuilder builder(kThreads);
  builder.Append({.process = {1, 2}, .tid = 7, .name = "loader", .started_ns = 5, .exited_ns = std::nullopt});
  const Batch good = builder.Take();

  Batch short_values = good;
  short_values.columns[1].values.pop_back();
  EXPECT_EQ(Validate(short_values).error().code, ErrorCode::kCorrupt);

  Batch text_outside = good;
  text_outside.columns[2].ends[0] = 1000;
  EXPECT_EQ(Validate(text_outside).error().code, ErrorCode::kCorrupt);

  Batch missing_end = good;
  missing_end.columns[2].ends.clear();
  EXPECT_EQ(Validate(missing_end).error().code, ErrorCode::kCorrupt);

  Batch validity = good;
  validity.columns[4].valid.push_back(1);
  EXPECT_EQ(Validate(validity).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::model
