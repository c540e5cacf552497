// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <random>
#include <tuple>

#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "store/live/live_store.h"
#include "store/queries/profile_query.h"
#include "store/rollups/sample_windows.h"
#include "store/rollups/windows.h"

namespace gpusonde::store {
namespace {

constexpr Id128 kSampleSpool{1, 2};
constexpr int64_t kWindow = kFiveMinutes.length_ns;
constexpr int64_t kSampleMidnightNs = 20'000 * kNanosPerDay;
constexpr int64_t kEarliest = std::numeric_limits<int64_t>::min();
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

model::Batch SamplesAt(const std::vector<int64_t>& times) {
  model::BatchBuilder builder(model::kSamples);
  for (const int64_t time_ns : times)
    builder.Append({.time_ns = time_ns,
                    .process = {1, 1},
                    .tid = static_cast<int32_t>(time_ns % 3),
                    .stack = {2, static_cast<uint64_t>(time_ns % 7)},
                    .weight_ns = 10,
                    .duration_ns = 5});
  return builder.Take();
}

class Windows : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }

  void Reopen() {
    store_.reset();
    auto opened = LiveStore::Open(folder_ / "live");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    store_ = std::move(*opened);
  }

  void Commit(int64_t day_ns, const std::vector<int64_t>& times) {
    const model::Batch batch = SamplesAt(times);
    const Status done = store_->Commit(DayOf(day_ns), kSampleSpool, ++sequence_, {&batch, 1});
    ASSERT_TRUE(done.has_value()) << done.error().message;
    times_.insert(times_.end(), times.begin(), times.end());
  }

  int64_t Number(const std::string& sql) {
    auto rows = store_->Query(sql);
    EXPECT_TRUE(rows.has_value()) << rows.error().message;
    return rows.has_value() && (*rows)->Next().value_or(false) ? (*rows)->Int64(0) : -1;
  }

  // What the store answers, from sums and samples, is what the samples say.
  void ExpectExact(int64_t from_ns, int64_t to_ns) {
    std::map<std::pair<int32_t, uint64_t>, int64_t> expected;
    for (const int64_t time_ns : times_)
      if (time_ns >= from_ns && time_ns < to_ns)
        ++expected[{static_cast<int32_t>(time_ns % 3), static_cast<uint64_t>(time_ns % 7)}];
    const auto processes = ReadProcesses(*store_, {.from_ns = from_ns, .to_ns = to_ns});
    ASSERT_TRUE(processes.has_value()) << processes.error().message;
    std::map<int32_t, int64_t> by_thread;
    for (const auto& [key, count] : expected) by_thread[key.first] += count * 10;
    std::map<int32_t, int64_t> read;
    for (const ProcessUse& process : *processes)
      for (const ThreadUse& thread : process.threads) read[thread.tid] += thread.cpu_ns;
    EXPECT_EQ(read, by_thread) << from_ns << " to " << to_ns;

    const auto profile = ReadProfile(*store_, {.from_ns = from_ns, .to_ns = to_ns});
    ASSERT_TRUE(profile.has_value()) << profile.error().message;
    int64_t count = 0;
    for (const auto& sample : profile->samples) count += sample.count;
    int64_t expected_count = 0;
    for (const auto& [key, number] : expected) expected_count += number;
    EXPECT_EQ(count, expected_count) << from_ns << " to " << to_ns;
  }

  TempFolder folder_;
  std::unique_ptr<LiveStore> store_;
  int64_t sequence_ = 0;
  std::vector<int64_t> times_;
};

TEST_F(Windows, AreSummedOnceTheyAreOver) {
  Commit(kSampleMidnightNs, {kSampleMidnightNs, kSampleMidnightNs + 21, kSampleMidnightNs + 42});
  EXPECT_LE(store_->sample_windows().to_ns, kSampleMidnightNs) << "the first is not over";
  EXPECT_EQ(Number("SELECT count(*) FROM profile_windows"), 0);
  Commit(kSampleMidnightNs, {kSampleMidnightNs + kWindow + 9 * kNanosPerSecond});
  EXPECT_EQ(Number("SELECT count(*) FROM profile_windows"), 0) << "what is slow may still come";
  Commit(kSampleMidnightNs, {kSampleMidnightNs + kWindow + 11 * kNanosPerSecond});
  EXPECT_EQ(store_->sample_windows().to_ns, kSampleMidnightNs + kWindow);
  EXPECT_EQ(Number("SELECT count(*) FROM profile_windows"), 1) << "three samples of one thread and stack";
  EXPECT_EQ(Number("SELECT sum(weight_ns)::BIGINT FROM profile_windows"), 30);
  EXPECT_EQ(Number("SELECT sum(count)::BIGINT FROM profile_windows"), 3);
  EXPECT_EQ(Number("SELECT sum(variance_ns2)::BIGINT FROM profile_windows"), 3 * 50) << "(1 - p) / p² · 5²";
}

TEST_F(Windows, IncludeLateSamples) {
  Commit(kSampleMidnightNs, {kSampleMidnightNs, kSampleMidnightNs + kWindow * 3});
  Commit(kSampleMidnightNs, {kSampleMidnightNs + 1, kSampleMidnightNs + kWindow * 2 + 5});
  EXPECT_EQ(Number("SELECT sum(count)::BIGINT FROM profile_windows"), 2)
      << "two of the four are in what is over";
  ExpectExact(kSampleMidnightNs, kSampleMidnightNs + kWindow * 4);
  // In the file of the next day, too.
  Commit(kSampleMidnightNs + kNanosPerDay,
         {kSampleMidnightNs + kNanosPerDay - 1, kSampleMidnightNs + kNanosPerDay + kWindow * 2});
  Commit(kSampleMidnightNs + kNanosPerDay, {kSampleMidnightNs + kNanosPerDay - 2});
  ExpectExact(kSampleMidnightNs, kSampleMidnightNs + 2 * kNanosPerDay);
}

TEST_F(Windows, AStoreWrittenWithoutThemGetsThemWhenOpened) {
  Commit(kSampleMidnightNs, {kSampleMidnightNs, kSampleMidnightNs + kWindow * 3});
  Commit(kSampleMidnightNs + kNanosPerDay,
         {kSampleMidnightNs + kNanosPerDay - 1, kSampleMidnightNs + kNanosPerDay + kWindow * 2});
  const std::string sql = "SELECT sum(count)::BIGINT FROM profile_windows";
  const int64_t before = Number(sql);
  store_.reset();
  for (const char* day : {"2024-10-04", "2024-10-05"}) {
    // Only LiveStore writes these files, so the rows go through DuckDB's own client side of the store.
    auto instance = duckdb::Instance::Create({});
    ASSERT_TRUE(instance.has_value());
    auto connection = duckdb::Connection::Open(*instance);
    ASSERT_TRUE(connection.has_value());
    const std::string path = fmt::format("{}/{}.sonde", folder_ / "live", day);
    ASSERT_TRUE(connection->Run(fmt::format("ATTACH '{}' AS day", path)).has_value());
    ASSERT_TRUE(connection->Run("DELETE FROM day.profile_windows").has_value());
  }
  Reopen();
  EXPECT_EQ(Number(sql), before);
  ExpectExact(kSampleMidnightNs, kSampleMidnightNs + 2 * kNanosPerDay);
}

TEST_F(Windows, RowsThatCantBeSummedDontKeepTheStoreFromBeingOpened) {
  std::vector<int64_t> times;
  for (int64_t i = 0; i < 300; ++i) times.push_back(kSampleMidnightNs + 21 * i);  // of one thread and stack
  Commit(kSampleMidnightNs, times);
  store_.reset();
  {
    auto instance = duckdb::Instance::Create({});
    ASSERT_TRUE(instance.has_value());
    auto connection = duckdb::Connection::Open(*instance);
    ASSERT_TRUE(connection.has_value());
    ASSERT_TRUE(
        connection->Run(fmt::format("ATTACH '{}/2024-10-04.sonde' AS day", folder_ / "live")).has_value());
    const Status narrow =
        connection->Run("ALTER TABLE day.profile_windows ALTER count SET DATA TYPE TINYINT");
    ASSERT_TRUE(narrow.has_value()) << narrow.error().message;
  }
  Reopen();
  Commit(kSampleMidnightNs, {kSampleMidnightNs + 3 * kWindow});
  for (int i = 0; i < 2; ++i) {
    EXPECT_LE(store_->sample_windows().to_ns, kSampleMidnightNs);
    ASSERT_EQ(store_->notices().size(), 1u);
    EXPECT_NE(store_->notices()[0].find("because windows are not summed: "), std::string::npos)
        << store_->notices()[0];
    EXPECT_EQ(Number("SELECT count(*) FROM samples"), 301);
    ExpectExact(kSampleMidnightNs, kSampleMidnightNs + 4 * kWindow);
    ASSERT_NO_FATAL_FAILURE(Reopen());
  }
}

TEST_F(Windows, SayTheSameAsTheSamplesWhateverTheClockDoes) {
  std::mt19937_64 random(20261121);
  const auto below = [&](int64_t bound) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(bound));
  };
  int64_t now_ns = kSampleMidnightNs;
  for (int round = 0; round < 200; ++round) {
    now_ns += below(6 * kWindow);
    if (below(15) == 0) now_ns += below(30 * kHour.length_ns) - 28 * kHour.length_ns;  // the clock steps
    if (below(25) == 0) Reopen();
    std::vector<int64_t> times;
    for (int64_t i = below(20); i > 0; --i)
      times.push_back(now_ns - below(below(10) == 0 ? 4 * kWindow : kNanosPerSecond));
    Commit(now_ns, times);
    if (HasFatalFailure()) return;
  }
  for (const WindowLevel& level : {kFiveMinutes, kHour, kDay})
    EXPECT_GT(Number(fmt::format("SELECT count(*) FROM profile_windows WHERE end_ns - start_ns = {}",
                                 level.length_ns)),
              0);
  ExpectExact(kEarliest, kNoLimit);
  for (int i = 0; i < 40; ++i) {
    const int64_t from_ns = kSampleMidnightNs - kNanosPerDay + below(4 * kNanosPerDay);
    ExpectExact(from_ns, from_ns + below(3 * kNanosPerDay));
  }
}

TEST_F(Windows, TimesThatNoClockShowsAreKeptAsSamples) {
  Commit(kSampleMidnightNs, {kEarliest, -1, kSampleMidnightNs, kSampleMidnightNs + 2 * kWindow, kNoLimit});
  Commit(kSampleMidnightNs, {kEarliest, kSampleMidnightNs + 1, kNoLimit - 1});
  EXPECT_EQ(Number("SELECT count(*) FROM samples"), 8);
  const auto profile =
      ReadProfile(*store_, {.from_ns = kSampleMidnightNs, .to_ns = kSampleMidnightNs + 3 * kWindow});
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  int64_t count = 0;
  for (const auto& sample : profile->samples) count += sample.count;
  EXPECT_EQ(count, 3);
}

TEST_F(Windows, WeightsWhoseSumIsTooLargeDontKeepTheStoreFromBeingRead) {
  model::BatchBuilder builder(model::kSamples);
  for (const int64_t time_ns : {kSampleMidnightNs, kSampleMidnightNs + 1, kSampleMidnightNs + 2 * kWindow})
    builder.Append({.time_ns = time_ns, .process = {1, 1}, .tid = 1, .stack = {2, 1}, .weight_ns = kNoLimit});
  const model::Batch samples = builder.Take();
  ASSERT_TRUE(store_->Commit(DayOf(kSampleMidnightNs), kSampleSpool, ++sequence_, {&samples, 1}).has_value());
  EXPECT_EQ(Number("SELECT max(weight_ns) FROM profile_windows"), kNoLimit);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  const model::Selection selection{.from_ns = kSampleMidnightNs, .to_ns = kSampleMidnightNs + 3 * kWindow};
  const auto processes = ReadProcesses(*store_, selection);
  ASSERT_TRUE(processes.has_value()) << processes.error().message;
  EXPECT_EQ(processes->front().cpu_ns, kNoLimit);
  const auto strip = ReadCpuStrip(*store_, selection, 1);
  EXPECT_TRUE(strip.has_value()) << strip.error().message;
  const auto profile = ReadProfile(*store_, selection);
  ASSERT_TRUE(profile.has_value()) << profile.error().message;
  EXPECT_GT(profile->samples.front().weight_ns, kNoLimit / 4);
}

TEST_F(Windows, AStripOfLongBucketsSpreadsThemEvenly) {
  model::BatchBuilder sources(model::kSources);
  sources.Append({.source = {9, 9},
                  .host = "here",
                  .started_ns = kSampleMidnightNs,
                  .ended_ns = kSampleMidnightNs + 12 * kWindow});
  const model::Batch source = sources.Take();
  ASSERT_TRUE(store_->Commit(DayOf(kSampleMidnightNs), kSampleSpool, ++sequence_, {&source, 1}).has_value());
  std::vector<int64_t> times;
  for (int64_t i = 0; i < 1200; ++i) times.push_back(kSampleMidnightNs + i * (kWindow / 100));
  Commit(kSampleMidnightNs, times);
  // Buckets of 2.4 windows: their borders lie within windows.
  const auto strip =
      ReadCpuStrip(*store_, {.from_ns = kSampleMidnightNs, .to_ns = kSampleMidnightNs + 12 * kWindow}, 5);
  ASSERT_TRUE(strip.has_value()) << strip.error().message;
  ASSERT_EQ(strip->values.size(), 5U);
  for (const auto& value : strip->values) {
    ASSERT_TRUE(value.has_value());
    EXPECT_NEAR(*value * 2.4 * kWindow, 240 * 10, 11);
  }
}

}  // namespace
}  // namespace gpusonde::store
