// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/rollup.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/duckdb/testing/memory_connection.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kSecond = kNanosPerSecond;
constexpr int64_t kMinute = 60 * kSecond;

// Tables in memory: what files hold, and a line for each call, times in seconds.
class FakeTables : public RollupTables {
 public:
  struct State {
    std::map<std::string, Stored> files;
    std::vector<std::string> calls;
    bool sums_fail = false;
    int64_t failure_takes_ns = 0;
    int failures = 0;
    int64_t clock_ns = kMinute;  // monotonic
    int64_t backlog_ns = 10 * kMinute;
    std::optional<int64_t> corrected_until_ns;  // else everything stays summed
  };
  explicit FakeTables(State& state) : state_(state) {}

  Traits traits() const override {
    return {.name = "sums", .shortest = {kMinute}, .open = {5 * kMinute}, .backlog_ns = state_.backlog_ns};
  }
  std::optional<TimeRange> TimesOf(std::span<const model::Batch> /*batches*/) const override {
    return std::nullopt;
  }
  Result<Stored> Read(const Ask& /*ask*/, std::string_view catalog) const override {
    return state_.files[std::string(catalog)];
  }
  Status Sum(duckdb::Connection& /*connection*/, std::string_view catalog,
             const TimeRange& range) const override {
    if (state_.sums_fail) {
      state_.clock_ns += state_.failure_takes_ns;
      ++state_.failures;
      return Fail(ErrorCode::kUnavailable, "no memory");
    }
    state_.calls.push_back(fmt::format("{} {}-{}", catalog, range.from_ns / kSecond, range.to_ns / kSecond));
    return {};
  }
  Result<int64_t> Correct(duckdb::Connection& /*connection*/, std::string_view catalog,
                          const TimeRange& times, const TimeRange& summed) const override {
    state_.calls.push_back(
        fmt::format("correct {} {}-{}", catalog, times.from_ns / kSecond, times.to_ns / kSecond));
    return state_.corrected_until_ns.value_or(summed.to_ns);
  }

 private:
  State& state_;
};

class RollupTest : public duckdb::MemoryConnectionTest {
 protected:
  std::vector<std::string> Load(const std::vector<std::string>& catalogs) {
    EXPECT_TRUE(Start(catalogs).has_value());
    return std::exchange(tables_.calls, {});
  }
  Status Start(const std::vector<std::string>& catalogs) {
    rollup_.Reset();
    for (const std::string& catalog : catalogs) EXPECT_TRUE(rollup_.Add(*connection_, catalog).has_value());
    return rollup_.Start(*connection_, may_write_);
  }
  // Of rows with these first and last times, in seconds.
  std::vector<std::string> Advance(const std::string& catalog, int64_t from, int64_t to) {
    EXPECT_TRUE(rollup_.Advance(*connection_, catalog, {from * kSecond, to * kSecond}).has_value());
    return std::exchange(tables_.calls, {});
  }
  std::vector<std::string> Correct(const std::string& catalog, int64_t from, int64_t to) {
    EXPECT_TRUE(rollup_.Correct(*connection_, catalog, {from * kSecond, to * kSecond}).has_value());
    return std::exchange(tables_.calls, {});
  }
  std::string Summed() const {
    return fmt::format("{}-{}", rollup_.summed().from_ns / kSecond, rollup_.summed().to_ns / kSecond);
  }

  FakeTables::State tables_;
  Status may_write_;
  int64_t clock_ns_ = EpochNow();
  Rollup rollup_{std::make_unique<FakeTables>(tables_), [this] { return clock_ns_; },
                 [this] { return tables_.clock_ns; }};
};

TEST_F(RollupTest, SumsWindowsThatEndedTheAllowedLatenessBeforeTheNewestRow) {
  EXPECT_THAT(Advance("a", 6000, 6069), ElementsAre("a 5460-6000")) << "sums begin with the backlog";
  EXPECT_THAT(Advance("a", 6069, 6069), IsEmpty());
  EXPECT_THAT(Advance("a", 6070, 6070), ElementsAre("a 6000-6060"));
  EXPECT_EQ(Summed(), "5460-6060");
}

TEST_F(RollupTest, ABacklogWithoutEndBeginsAtTheEpoch) {
  tables_.backlog_ns = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(Advance("a", 6000, 6069), ElementsAre("a 0-6000"));
  EXPECT_EQ(Summed(), "0-6000");
}

TEST_F(RollupTest, SumsEveryFileWithRowsInTheOpenWindow) {
  Advance("a", 6000, 6070);
  EXPECT_THAT(Advance("b", 6140, 6140), ElementsAre("a 6060-6120", "b 6060-6120"))
      << "6070 is in the window of 6000 to 6300, which is open";
  EXPECT_THAT(Advance("b", 6400, 6400), ElementsAre("a 6120-6360", "b 6120-6360"));
  EXPECT_THAT(Advance("b", 6500, 6500), ElementsAre("b 6360-6480")) << "the rows of a are over";
}

TEST_F(RollupTest, CorrectsTheSumsOfLateRowsOnly) {
  Advance("a", 6000, 6070);
  EXPECT_THAT(Correct("a", 6060, 6080), IsEmpty());
  EXPECT_THAT(Correct("a", 6059, 6080), ElementsAre("correct a 6059-6080"));
  EXPECT_EQ(Summed(), "5460-6060") << "corrected in place";
}

TEST_F(RollupTest, SumsAgainWhatACorrectionDeleted) {
  Advance("a", 6000, 6070);
  tables_.corrected_until_ns = 5940 * kSecond;
  Correct("a", 5950, 5950);
  EXPECT_EQ(Summed(), "5460-5940");
  EXPECT_THAT(Advance("a", 5950, 5950), ElementsAre("a 5940-6060"));
  tables_.corrected_until_ns = 0;
  Correct("a", 1, 1);
  EXPECT_EQ(Summed(), "5460-5460") << "never before the first sums";
}

TEST_F(RollupTest, TriesAgainAfterAnErrorForAFiftiethOfTheTimeAtMost) {
  tables_.sums_fail = true;
  tables_.failure_takes_ns = 3 * kSecond;
  const auto fails = [this](int64_t at_ns) {
    tables_.clock_ns = at_ns;
    const Status failed = rollup_.Advance(*connection_, "a", {6000 * kSecond, 6070 * kSecond});
    return !failed.has_value() && failed.error().message == "no memory";
  };
  for (int64_t second = 0; second < 600; ++second) EXPECT_TRUE(fails(kMinute + second * kSecond));
  EXPECT_EQ(tables_.failures, 4);
  tables_.sums_fail = false;
  EXPECT_TRUE(fails(kMinute + 600 * kSecond)) << "of a file whose rows are summed later all the same";
  tables_.clock_ns = kMinute + 1000 * kSecond;
  EXPECT_THAT(Advance("b", 6070, 6070), ElementsAre("a 5460-6060", "b 5460-6060"));
  EXPECT_THAT(Advance("b", 6071, 6131), ElementsAre("a 6060-6120", "b 6060-6120"));
}

TEST_F(RollupTest, ContinuesWithTheSumsOfTheFiles) {
  tables_.files = {{"a", {{5400 * kSecond, 6000 * kSecond}, 6069 * kSecond}}};
  EXPECT_THAT(Load({"a"}), IsEmpty());
  EXPECT_EQ(Summed(), "5400-6000");
  tables_.files["a"].newest_ns = 6070 * kSecond;
  EXPECT_THAT(Load({"a"}), ElementsAre("a 6000-6060"));
  rollup_.Reset();
  EXPECT_EQ(Summed(), "0-0");
}

TEST_F(RollupTest, BringsFilesToOneEndWhenLoaded) {
  tables_.files = {{"a", {{5400 * kSecond, 5940 * kSecond}, 5990 * kSecond}},
                   {"b", {{5900 * kSecond, 6060 * kSecond}, 6065 * kSecond}},
                   {"c", {{}, 100 * kSecond}},
                   {"d", {{}, std::nullopt}}};
  EXPECT_THAT(Load({"a", "b", "c", "d"}), ElementsAre("a 5940-6060"));
  EXPECT_EQ(Summed(), "5400-6060");
  tables_.files["a"].summed = {};
  EXPECT_THAT(Load({"a", "b"}), ElementsAre("a 5900-6060")) << "no further back than the sums";
  tables_.files["b"].summed.from_ns = 0;
  tables_.files["a"].newest_ns = 5500 * kSecond;
  EXPECT_THAT(Load({"a", "b"}), ElementsAre("a 5460-6060")) << "no further back than the backlog";
}

TEST_F(RollupTest, AfterAnErrorAtTheStartUsesOnlyWhatEveryFileHas) {
  tables_.files = {{"a", {{5400 * kSecond, 5940 * kSecond}, 5990 * kSecond}},
                   {"b", {{5400 * kSecond, 6000 * kSecond}, 6010 * kSecond}},
                   {"c", {{5900 * kSecond, 6060 * kSecond}, 6065 * kSecond}}};
  tables_.sums_fail = true;
  EXPECT_EQ(Start({"a", "b", "c"}).error().message, "no memory");
  EXPECT_EQ(Summed(), "5400-5940");
  EXPECT_EQ(Start({"a", "b", "c"}).error().message, "no memory");
  EXPECT_EQ(tables_.failures, 1) << "not tried again at once";
  EXPECT_EQ(Summed(), "5400-5940");
  tables_.sums_fail = false;
  tables_.clock_ns += kMinute;
  EXPECT_THAT(Advance("c", 6066, 6066), ElementsAre("a 5940-6000", "b 5940-6000", "c 5940-6000"));
  EXPECT_EQ(Summed(), "5400-6000");
}

TEST_F(RollupTest, StartsWithoutSummingWhereNothingMayBeWritten) {
  tables_.files = {{"a", {{5400 * kSecond, 5940 * kSecond}, 5990 * kSecond}},
                   {"b", {{5400 * kSecond, 6000 * kSecond}, 6010 * kSecond}}};
  may_write_ = Fail(ErrorCode::kOutOfSpace, "no room");
  EXPECT_EQ(Start({"a", "b"}).error().message, "no room");
  EXPECT_EQ(Summed(), "5400-5940");
  EXPECT_THAT(tables_.calls, IsEmpty());
  EXPECT_THAT(Advance("b", 6066, 6066), ElementsAre("a 5940-6000", "b 5940-6000")) << "rows were written";
}

TEST_F(RollupTest, SumsNothingInTheFutureOfAClockThatWasSteppedBack) {
  Advance("a", 6000, 6070);
  clock_ns_ = 5900 * kSecond;
  tables_.corrected_until_ns = 5880 * kSecond;
  Correct("a", 5895, 5895);
  EXPECT_THAT(Advance("a", 5895, 5895), IsEmpty());
  EXPECT_EQ(Summed(), "5460-5880");
  clock_ns_ = 5960 * kSecond;
  EXPECT_THAT(Advance("a", 5955, 5955), ElementsAre("a 5880-5940"));

  tables_.files = {{"a", {{5400 * kSecond, 5940 * kSecond}, 6070 * kSecond}},
                   {"b", {{5900 * kSecond, 6060 * kSecond}, 6065 * kSecond}}};
  EXPECT_THAT(Load({"a", "b"}), IsEmpty());
  EXPECT_EQ(Summed(), "5400-5940");
  clock_ns_ = 6030 * kSecond;
  EXPECT_THAT(Advance("b", 6025, 6025), ElementsAre("a 5940-6000", "b 5940-6000"));
  tables_.files["b"].summed.from_ns = 6060 * kSecond;
  tables_.files["a"].summed = {};
  Load({"a", "b"});
  EXPECT_LE(rollup_.summed().to_ns, clock_ns_);
}

TEST_F(RollupTest, ForgetsDeletedFiles) {
  Advance("a", 6000, 6070);
  rollup_.Forget("a");
  EXPECT_THAT(Advance("b", 6140, 6140), ElementsAre("b 6060-6120"));
}

}  // namespace
}  // namespace gpusonde::store
