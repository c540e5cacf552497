// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/testing/temp_folder.h"
#include "fleet/service/release_file.h"
#include "fleet/service/testing/fleet.h"

namespace gpusonde::fleet {
namespace {

using privacy::kReportWeight;
using privacy::kRowSlots;
using ::testing::HasSubstr;
using ::testing::Not;

class ResultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Board::Open(testing::SmallFleet(2), folder_ / "board");
    ASSERT_TRUE(opened.has_value()) << opened.error().message;
    board_ = *std::move(opened);
  }

  // A list in which so many devices ran the first application.
  static Release::List ListOf(uint32_t place, int32_t devices) {
    Release::List list{.place = place,
                       .cohort = 0,
                       .reports = 100,
                       .answers = 2,
                       .outcome = Outcome::kReleased,
                       .slots = std::vector<int32_t>(privacy::kReportSlots)};
    list.slots[3] = devices * static_cast<int32_t>(kReportWeight);
    list.slots[kRowSlots - 1] = devices * static_cast<int32_t>(kReportWeight);
    return list;
  }
  void Write(uint32_t epoch, std::vector<Release::List> lists) const {
    Release release;
    release.epoch = epoch;
    release.devices = 200;
    release.verdicts = {200, 1, 0, 2};
    release.lists = std::move(lists);
    ASSERT_TRUE(WriteRelease(board_->releases_folder(), release).has_value());
  }
  Results Sum(size_t epochs) const {
    auto results = SumUp(*board_, epochs);
    EXPECT_TRUE(results.has_value()) << results.error().message;
    return std::move(results).value_or(Results());
  }

  TempFolder folder_;
  std::unique_ptr<Board> board_;
};

TEST_F(ResultsTest, EstimatesDevicesFromThoseThatWereDrawn) {
  // Half of the devices are drawn for the place of histograms, the others for that of signatures.
  Write(7, {ListOf(0, 60), {.place = 1, .cohort = 0, .reports = 100, .answers = 1}});
  Write(8, {ListOf(0, 70)});
  const Results both = Sum(10);
  EXPECT_EQ(both.epochs, 2u);
  EXPECT_EQ(both.reports, 400u);
  EXPECT_EQ(both.rejected, 6u);
  EXPECT_EQ(both.lists, (std::array<size_t, kOutcomes>{2, 0, 1}));
  ASSERT_EQ(both.applications.front().name, "one");
  EXPECT_NEAR(both.applications.front().devices, 260, 1e-6);
  EXPECT_TRUE(both.applications.front().is_shown);
  EXPECT_FALSE(both.applications.back().is_shown);
  ASSERT_EQ(both.applications.front().histograms.size(), 1u);
  EXPECT_NEAR(both.applications.front().histograms[0].bins[3], 130, 1e-6);
  EXPECT_NEAR(Sum(1).applications.front().devices, 140, 1e-6);
}

TEST_F(ResultsTest, TextShowsWhatNoiseCannotMake) {
  Write(7, {ListOf(0, 60)});
  const std::string text = ToText(Sum(24));
  EXPECT_THAT(text, HasSubstr("200 reports accepted, 3 rejected"));
  EXPECT_THAT(text, HasSubstr("one "));
  EXPECT_THAT(text, HasSubstr("60.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("\ntwo ")));
}

TEST_F(ResultsTest, SaysWhatIsMissingAtFirst) {
  EXPECT_THAT(ToText(Sum(24)), HasSubstr("nothing is released yet"));
  Write(7, {});
  EXPECT_THAT(ToText(Sum(24)), HasSubstr("no application is beyond the noise yet"));
}

TEST_F(ResultsTest, JsonHasTheSame) {
  Write(7, {ListOf(0, 60)});
  const auto json = nlohmann::json::parse(ToJson(Sum(24)));
  EXPECT_EQ(json["version"], 1);
  EXPECT_EQ(json["first_epoch"], 7);
  EXPECT_EQ(json["lists"]["released"], 1);
  EXPECT_NEAR(json["applications"][0]["devices"].get<double>(), 120, 1e-6);
  EXPECT_EQ(json["applications"][0]["histograms"][0]["group"], "kernel_types");
  EXPECT_TRUE(nlohmann::json::parse(ToJson(Results()))["first_epoch"].is_null());
}

TEST_F(ResultsTest, RefusesADamagedFile) {
  Write(7, {ListOf(0, 60)});
  const std::string path = board_->releases_folder() + "/7.release";
  const std::string whole = ReadFile(path).value();
  for (const size_t bytes : {size_t{0}, size_t{10}, whole.size() - 1}) {
    ASSERT_TRUE(WriteFileAtomically(path, whole.substr(0, bytes)).has_value());
    EXPECT_EQ(SumUp(*board_, 1).error().code, ErrorCode::kCorrupt) << bytes;
  }
  ASSERT_TRUE(WriteFileAtomically(path, whole + "x").has_value());
  EXPECT_EQ(SumUp(*board_, 1).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace gpusonde::fleet
