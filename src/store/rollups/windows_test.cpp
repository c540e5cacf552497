// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/windows.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "base/time.h"
#include "model/batch.h"
#include "model/tables/samples.h"
#include "store/rollups/sample_windows.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kEarliest = std::numeric_limits<int64_t>::min();
constexpr int64_t kLatest = std::numeric_limits<int64_t>::max();

TEST(WindowStart, IsAtOrBeforeTheTimeWithinWhatWindowsCover) {
  EXPECT_EQ(WindowStart(kHour, 0), 0);
  EXPECT_EQ(WindowStart(kHour, kHour.length_ns - 1), 0);
  EXPECT_EQ(WindowStart(kHour, kHour.length_ns), kHour.length_ns);
  EXPECT_EQ(WindowStart(kDay, kEarliest), 0);
  EXPECT_GT(WindowStart(kDay, kLatest), kLatest - 4 * kDay.length_ns);
  EXPECT_LT(WindowStart(kDay, kLatest), kLatest - kDay.length_ns);
}

// "3d 2h samples" and the like, of consecutive pieces that cover the range.
std::string Describe(const TimeRange& range, const TimeRange& summed, bool by_stack) {
  std::string text;
  int64_t at_ns = range.from_ns;
  for (const TimePiece& piece : PiecesOfSamples(range, summed, by_stack)) {
    EXPECT_EQ(piece.range.from_ns, at_ns) << "no time is missing or twice";
    at_ns = piece.range.to_ns;
    text += text.empty() ? "" : " ";
    text += !piece.level.has_value()
                ? "samples"
                : fmt::format("{}x{}", (piece.range.to_ns - piece.range.from_ns) / piece.level->length_ns,
                              piece.level->length_ns / kNanosPerSecond);
  }
  EXPECT_EQ(at_ns, range.to_ns);
  return text;
}

TEST(PiecesOf, AreAsLongAsTheRangeAndTheWindowsAllow) {
  const int64_t day = kDay.length_ns;
  const int64_t hour = kHour.length_ns;
  EXPECT_EQ(Describe({0, 3 * day}, {0, kLatest}, true), "3x86400");
  EXPECT_EQ(Describe({day - 2 * hour - 1, 3 * day + hour}, {0, kLatest}, true),
            "samples 2x3600 2x86400 1x3600");
  EXPECT_EQ(Describe({0, 3 * day}, {0, 2 * day + hour + 1}, true), "2x86400 1x3600 samples");
  EXPECT_EQ(Describe({1, hour}, {0, kLatest}, true), "samples");
  EXPECT_EQ(Describe({hour / 2, hour + hour / 2}, {0, kLatest}, false), "12x300");
  EXPECT_EQ(Describe({0, 3 * day}, {0, 0}, true), "samples");
  EXPECT_EQ(Describe({kEarliest, 2 * hour}, {0, kLatest}, true), "samples 2x3600");
  EXPECT_EQ(Describe({0, 3 * hour}, {hour + 1, kLatest}, true), "samples 1x3600") << "sums begin later";
  EXPECT_EQ(Describe({0, 3 * hour}, {}, true), "samples");
}

model::Batch Samples(const std::vector<int64_t>& times) {
  model::BatchBuilder builder(model::kSamples);
  for (const int64_t time_ns : times) builder.Append({.time_ns = time_ns});
  return builder.Take();
}

TEST(SampleRollup, TimesAreThoseOfTheTableOfSamples) {
  EXPECT_FALSE(SampleRollup()->TimesOf({}).has_value());
  const model::Batch batches[] = {Samples({7, 5}), Samples({}), Samples({9})};
  const auto times = SampleRollup()->TimesOf(batches);
  ASSERT_TRUE(times.has_value());
  EXPECT_EQ(times->from_ns, 5);
  EXPECT_EQ(times->to_ns, 9);
}

TEST(SampleRollup, ABatchThatTheStoreWillRefuseHasNoTimes) {
  model::Batch cut = Samples({7, 5});
  const auto column = std::ranges::find(cut.columns, "time_ns", &model::ColumnData::name);
  ASSERT_NE(column, cut.columns.end());
  model::Batch of_other_type = cut;
  column->values.pop_back();
  EXPECT_FALSE(SampleRollup()->TimesOf({&cut, 1}).has_value());
  // As a server may receive it: consistent, but of another type than the table's column.
  model::ColumnData& other = of_other_type.columns[static_cast<size_t>(column - cut.columns.begin())];
  other.type = model::ColumnType::kBool;
  other.values.resize(of_other_type.rows);
  ASSERT_TRUE(model::Validate(of_other_type).has_value());
  EXPECT_FALSE(SampleRollup()->TimesOf({&of_other_type, 1}).has_value());
}

}  // namespace
}  // namespace gpusonde::store
