// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/temp_folder.h"
#include "model/tables/samples.h"
#include "store/live/live_store.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;

constexpr Day kDayZero = std::chrono::sys_days(
    std::chrono::year_month_day(std::chrono::year(2026), std::chrono::month(11), std::chrono::day(23)));
constexpr Id128 kRetainedSpool{1, 2};
constexpr int64_t kAnySize = INT64_MAX;

class Retention : public testing::Test {
 protected:
  void SetUp() override { Reopen(); }
  void Reopen() {
    store_.reset();
    store_ = LiveStore::Open(folder_ / "live").value();
  }
  void Commit(std::initializer_list<int> numbers) {
    for (const int day : numbers) {
      model::BatchBuilder samples(model::kSamples);
      samples.Append({.time_ns = day, .process = {1, 1}, .tid = 7});
      const Status committed =
          store_->Commit(kDayZero + std::chrono::days(day), kRetainedSpool, ++frames_, {{samples.Take()}});
      ASSERT_TRUE(committed.has_value()) << committed.error().message;
    }
  }
  int Retain(int max_days, int64_t max_bytes = kAnySize) const {
    return store_->Retain(max_days, max_bytes).value();
  }
  std::vector<int> Left() const {
    std::vector<int> left;
    for (const Day day : store_->days()) left.push_back(static_cast<int>((day - kDayZero).count()));
    return left;
  }

  static constexpr int k1970 = -static_cast<int>(kDayZero.time_since_epoch().count());
  TempFolder folder_;
  std::unique_ptr<LiveStore> store_;
  int64_t frames_ = 0;
};

TEST_F(Retention, OldDaysGoByAge) {
  Commit({0, 1, 2, 8});
  EXPECT_EQ(Retain(8), 1) << "day 1 is the first of eight days that end with the last";
  EXPECT_THAT(Left(), ElementsAre(1, 2, 8));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "live/2026-11-23.sonde"));
  EXPECT_EQ(Retain(6), 0) << "the days before the gap may be the newest";
  Commit({9, 10});
  EXPECT_EQ(Retain(1), 4);
  EXPECT_THAT(Left(), ElementsAre(10));
  EXPECT_EQ(store_->CommittedThrough(kRetainedSpool), 6) << "what has gone isn't taken again";
  EXPECT_FALSE(store_->Retain(0, kAnySize).has_value());
}

TEST_F(Retention, OldDaysGoBySizeButNeverTheNewest) {
  Commit({0, 1, 2});
  EXPECT_EQ(Retain(100), 0);
  EXPECT_EQ(Retain(100, 0), 2);
  EXPECT_THAT(Left(), ElementsAre(2));
}

TEST_F(Retention, EndsBetweenTwoDaysWhenTheProcessStops) {
  Commit({0, 1, 2, 3});
  int asked = 0;
  EXPECT_EQ(store_->Retain(1, kAnySize, [&] { return ++asked > 2; }).value(), 2);
  EXPECT_THAT(Left(), ElementsAre(2, 3));
  EXPECT_EQ(Retain(1), 1);
}

TEST_F(Retention, DamagedFilesCountAndGoWithTheirDay) {
  Commit({0, 1, 2, 3});
  store_.reset();
  const std::string folder = folder_ / "live/2026-11-";
  for (const char* damaged : {"23", "24", "26"})
    std::filesystem::resize_file(folder + damaged + ".sonde",
                                 std::filesystem::file_size(folder + damaged + ".sonde") / 2);
  Reopen();
  Commit({1, 2, 3});
  const auto damaged = [&] {
    std::vector<std::string> left;
    for (const char* day : {"23", "24", "26"})
      if (std::filesystem::exists(folder + day + ".sonde.damaged")) left.emplace_back(day);
    return left;
  };
  EXPECT_EQ(store_->notices().size(), 3u);
  EXPECT_EQ(Retain(4), 0);
  EXPECT_THAT(damaged(), ElementsAre("23", "24", "26"));
  EXPECT_EQ(Retain(3), 0) << "day 0 has a damaged file only";
  EXPECT_THAT(damaged(), ElementsAre("24", "26"));
  EXPECT_EQ(store_->notices().size(), 2u);
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder_ / "live"))
    if (file.is_regular_file()) bytes += static_cast<int64_t>(file.file_size());
  EXPECT_EQ(Retain(4, bytes - 1), 0);
  EXPECT_THAT(damaged(), ElementsAre("26")) << "the oldest";
  EXPECT_THAT(Left(), ElementsAre(1, 2, 3));
  EXPECT_EQ(Retain(4, 0), 2);
  EXPECT_THAT(damaged(), ElementsAre()) << "nothing of it can be read";
  EXPECT_THAT(Left(), ElementsAre(3));
  EXPECT_EQ(store_->notices().size(), 0u);
}

TEST_F(Retention, AClockThatIsWrongForADayMakesNoOthersOld) {
  Commit({0, 1, 2, 30'000, 30'001});
  EXPECT_EQ(Retain(7), 0);
  Commit({3});
  EXPECT_EQ(Retain(7), 0);
  Reopen();
  EXPECT_EQ(Retain(7), 0);
  Commit({7, 8, 9});
  EXPECT_EQ(Retain(7), 3) << "days go on by age";
  EXPECT_THAT(Left(), ElementsAre(3, 7, 8, 9, 30'000, 30'001));
  EXPECT_EQ(Retain(7, 0), 5);
  EXPECT_THAT(Left(), ElementsAre(9));
}

TEST_F(Retention, AClockThatIsWrongOverMidnightsMakesNoOthersOld) {
  Commit({0, 1, 2, 3, 4, 5, 30'000, 30'001, 30'002, 30'003});
  EXPECT_EQ(Retain(7), 0);
  Commit({6, 7});
  EXPECT_EQ(Retain(7), 1) << "the days of the right clock go on by age";
  // A clock may stay wrong for longer. Once it is right, its days make no others old, however many there are.
  Commit({30'004, 30'005, 30'006, 8, 9});
  EXPECT_EQ(Retain(7), 2);
  Reopen();
  EXPECT_EQ(Retain(7), 0) << "nothing says what day it is";
  EXPECT_THAT(Left(),
              ElementsAre(3, 4, 5, 6, 7, 8, 9, 30'000, 30'001, 30'002, 30'003, 30'004, 30'005, 30'006));
}

TEST_F(Retention, TheDayThatIsWrittenStaysThoughItsClockIsBehind) {
  Commit({0, 1, 2, k1970});
  EXPECT_EQ(Retain(7), 0);
  EXPECT_EQ(Retain(7, 0), 3);
  EXPECT_THAT(Left(), ElementsAre(k1970));
  Commit({3, 4, 5, 6, 7, 8});
  EXPECT_EQ(Retain(7), 0) << "the clock may be wrong now";
  Commit({9});
  EXPECT_EQ(Retain(7), 1) << "the clock is right again";
  EXPECT_THAT(Left(), ElementsAre(3, 4, 5, 6, 7, 8, 9));
}

TEST(NewestBelieved, IsBeforeAGapUntilAsManyDaysFollowAsAreKept) {
  const auto believed = [](const std::vector<int>& numbers, int max_days) {
    std::vector<Day> recorded;
    for (const int number : numbers) recorded.push_back(kDayZero + std::chrono::days(number));
    return (NewestBelieved(recorded, max_days) - kDayZero).count();
  };
  EXPECT_EQ(believed({0}, 7), 0);
  EXPECT_EQ(believed({0, 6}, 7), 6);
  EXPECT_EQ(believed({0, 7}, 7), 0);
  EXPECT_EQ(believed({0, 7, 8, 9, 10, 11, 12}, 7), 0);
  EXPECT_EQ(believed({0, 7, 8, 9, 10, 11, 12, 13}, 7), 13);
  EXPECT_EQ(believed({0, 1, 2}, 1), 2) << "a day between any two is no gap";
  EXPECT_EQ(believed({0, 2, 3}, 1), 0);
  EXPECT_EQ(believed({0, 2, 3, 4}, 1), 4);
  EXPECT_EQ(believed({0, 7, 14, 21, 28, 35, 42, 49, 56}, 7), 14) << "a machine that runs once a week";
}

}  // namespace
}  // namespace gpusonde::store
