// SPDX-License-Identifier: Apache-2.0
#include "agent/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include "agent/rows_testing.h"
#include "base/testing/refused.h"
#include "base/testing/temp_folder.h"

namespace gpusonde::agent {
namespace {

// Uses the real kernel; skipped where the machine doesn't allow it.
class EngineTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<Engine> created = Engine::Create({.spool_folder = folder_ / "spool",
                                             .nvml_hz = 0,
                                             .command = "test",
                                             .diagnose = false,
                                             .measure_epoch_offset = [this] { return offset_ns_; }});
    SKIP_WHERE_REFUSED(created);
    engine_.emplace(std::move(*created));
    ASSERT_TRUE(engine_->collector().Follow(::getpid()).has_value());
    engine_->collector().Begin(MonotonicNow(), INT64_MAX);
  }

  std::vector<model::Batch> Gather() {
    Result<std::vector<model::Batch>> batches = engine_->Gather();
    EXPECT_TRUE(batches.has_value());
    return std::move(batches).value_or(std::vector<model::Batch>());
  }
  static int64_t CountRows(const std::vector<model::Batch>& batches) {
    int64_t rows = 0;
    for (const model::Batch& batch : batches) rows += static_cast<int64_t>(batch.rows);
    return rows;
  }
  static std::vector<int64_t> Offsets(const std::vector<model::Batch>& batches) {
    return FixedColumn<int64_t>(batches, "sources", "epoch_offset_ns");
  }

  TempFolder folder_;
  int64_t offset_ns_ = 1'800'000'000 * kNanosPerSecond;
  std::optional<Engine> engine_;
};

TEST_F(EngineTest, RowsWithoutRoomAreCountedAndNamesRepeated) {
  const std::vector<model::Batch> first = Gather();
  ASSERT_EQ(Offsets(first).size(), 1u);
  const auto kept = engine_->Spool(first);
  EXPECT_EQ(kept.lost_rows, 0);
  EXPECT_EQ(kept.sequences.size(), first.size());
  EXPECT_TRUE(Offsets(Gather()).empty()) << "the source's row was written";

  const auto lost = engine_->Spool(first, 0);
  EXPECT_EQ(lost.lost_rows, CountRows(first));
  EXPECT_TRUE(lost.sequences.empty());
  const std::vector<model::Batch> next = Gather();
  EXPECT_THAT(FixedColumn<int64_t>(next, "drops", "count"), testing::Contains(CountRows(first)));
  EXPECT_EQ(Offsets(next).size(), 1u) << "later rows refer to it";
}

TEST_F(EngineTest, ASourceBegunAfterAStepFollowsTheClock) {
  offset_ns_ += kNanosPerMilli;
  EXPECT_EQ(engine_->MeasureClockStep(), 0) << "slewed";
  const int64_t before_ns = engine_->epoch_offset_ns();
  offset_ns_ -= 3'600 * kNanosPerSecond;
  EXPECT_EQ(engine_->MeasureClockStep(), offset_ns_ - before_ns);
  const Id128 source = engine_->collector().source();
  std::vector<model::Batch> last;
  const Status begun = engine_->BeginSource(
      [] { return true; },
      [&](std::vector<model::Batch> batches) { std::ranges::move(batches, std::back_inserter(last)); });
  ASSERT_TRUE(begun.has_value()) << begun.error().message;
  EXPECT_EQ(engine_->MeasureClockStep(), 0);
  EXPECT_EQ(engine_->epoch_offset_ns(), offset_ns_);
  EXPECT_NE(engine_->collector().source(), source);
  ASSERT_FALSE(Offsets(last).empty());
  EXPECT_EQ(Offsets(last).back(), before_ns) << "the end of the source before";
}

}  // namespace
}  // namespace gpusonde::agent
