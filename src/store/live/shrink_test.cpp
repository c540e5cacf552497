// SPDX-License-Identifier: Apache-2.0
#include "store/live/shrink.h"

#include <gtest/gtest.h>

#include "model/tables/threads.h"

namespace gpusonde::store {
namespace {

int64_t RoomOf(const model::Batch& batch) {
  size_t bytes = 0;
  for (const model::ColumnData& column : batch.columns)
    bytes += column.values.capacity() + column.ends.capacity() * sizeof(uint32_t) + column.valid.capacity();
  return static_cast<int64_t>(bytes);
}

TEST(ShrinkToFit, ABatchThatWasBuiltRowByRowTakesNoMoreThanItsRows) {
  constexpr int64_t kRows = 1025;  // a vector that doubles has room for 2,048
  model::BatchBuilder builder(model::kThreads);
  for (int64_t row = 0; row < kRows; ++row)
    builder.Append({.process = {1, 2}, .tid = 7, .name = "t", .started_ns = {}, .exited_ns = 9});
  model::Batch batch = builder.Take();
  const int64_t before = RoomOf(batch);
  // process, tid, the name and its end, two times; whether there is a start.
  constexpr int64_t kNeeded = kRows * (16 + 4 + 1 + 4 + 2 * 8 + 1);
  EXPECT_EQ(ShrinkToFit(batch), kNeeded);
  EXPECT_EQ(RoomOf(batch), kNeeded);
  EXPECT_GT(before, kNeeded * 3 / 2);
  EXPECT_TRUE(model::Validate(batch).has_value());
  EXPECT_EQ(batch.rows, size_t{kRows});
}

}  // namespace
}  // namespace gpusonde::store
