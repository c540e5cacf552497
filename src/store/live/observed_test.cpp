// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/kernels.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "store/live/live_store.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {
namespace {

template <class Row>
model::Batch OneRow(const auto& table, const Row& row) {
  model::BatchBuilder builder(table);
  builder.Append(row);
  return builder.Take();
}

// A machine whose clock is behind, or that sends what waited in its spool, was not seen in the time since.
TEST(Observed, ARunWithoutAnEndIsObservedAsFarAsItsRowsGo) {
  const TempFolder folder;
  const auto store = LiveStore::Open(folder / "live");
  ASSERT_TRUE(store.has_value()) << store.error().message;
  const int64_t begin_ns = EpochNow() - 7200 * kNanosPerSecond, end_ns = begin_ns + kNanosPerSecond;
  const model::Source run{
      .source = {3, 3}, .kind = model::SourceKind::kAgent, .host = "behind", .started_ns = begin_ns};
  const model::Sample sample{.time_ns = end_ns, .process = {1, 1}, .tid = 7};
  const Day day = DayOf(begin_ns);
  ASSERT_TRUE((*store)->Commit(day, {1, 2}, 1, {{OneRow(model::kSources, run)}}).has_value());
  ASSERT_TRUE((*store)->Commit(day, {1, 2}, 2, {{OneRow(model::kSamples, sample)}}).has_value());
  const std::vector<TimeRange> observed = ReadObserved(**store).value();
  ASSERT_EQ(observed.size(), 1u);
  EXPECT_EQ(observed[0].from_ns, begin_ns);
  EXPECT_EQ(observed[0].to_ns, end_ns);
  const model::Kernel kernel{.process = {1, 1}, .start_ns = end_ns, .end_ns = end_ns + 5};
  ASSERT_TRUE((*store)->Commit(day, {1, 2}, 3, {{OneRow(model::kKernels, kernel)}}).has_value());
  EXPECT_EQ(ReadObserved(**store).value().back().to_ns, end_ns + 5);
}

}  // namespace
}  // namespace gpusonde::store
