// SPDX-License-Identifier: Apache-2.0
#include "store/sql/gpu_idle.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/testing/units.h"
#include "base/time.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "store/sql/testing/gpu_store.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kAll = int64_t{1} << 40;  // rows of work

SqlPart SamplesOf(const TimeRange& range) {
  return {"(SELECT * FROM samples WHERE time_ns >= ? AND time_ns < ?)", {range.from_ns, range.to_ns}};
}

class GpuIdle : public GpuSqlTest {
 protected:
  // Work of up to 40 ms and some of 1.5 s, a pack, and samples at random moments; observed for all but the
  // first second and what follows `seconds`.
  void AddWork(int64_t seconds) {
    Add(model::kProcesses, {{.process = kSqlProcess, .pid = 7, .name = "train"}});
    model::GpuSession session;
    session.process = kSqlProcess;
    session.session = 1;
    session.start_ns = kSecond;
    session.end_ns = seconds * kSecond;
    Add(model::kGpuSessions, {session});
    const auto moment = [&](int64_t until_s) {
      return static_cast<int64_t>(random_() % static_cast<uint64_t>(until_s * 1'000)) * kMs;
    };
    for (int64_t i = 0; i < 5 * seconds; ++i) {
      const int64_t start_ns = kSecond + moment(seconds - 1);
      const int64_t length_ns =
          random_() % 20 == 0 ? 1'500 * kMs : static_cast<int64_t>(random_() % 40) * kMs;
      times_.push_back({start_ns, start_ns + length_ns});
    }
    AddKernels(times_);
    AddPack(20 * kSecond, 50);
    for (int64_t i = 0; i < 33 * seconds; ++i) {
      model::Sample& sample = samples_.emplace_back();
      sample.time_ns = moment(seconds + 2) + static_cast<int64_t>(random_() % 2'000);
      sample.process = kSqlProcess;
      sample.weight_ns = 1;
      const auto runs = [&](const TimeRange& time) {
        return time.from_ns <= sample.time_ns && sample.time_ns < time.to_ns;
      };
      const bool observed = sample.time_ns >= kSecond && sample.time_ns < seconds * kSecond;
      const bool packed = sample.time_ns >= 20 * kSecond && sample.time_ns < 21 * kSecond &&
                          sample.time_ns % (kSecond / 50) < 1'000;
      if (observed && !packed && std::ranges::none_of(times_, runs)) ++idle_in_[sample.time_ns / kSecond];
    }
    Add(model::kSamples, samples_);
  }

  IdleSamples Idle(const IdleLimits& limits) {
    auto idle = WhileGpuIdle(Asking(*store_), SamplesOf, {.from_ns = 0, .to_ns = 100'000 * kSecond}, limits);
    EXPECT_TRUE(idle.has_value()) << idle.error().message;
    return idle.value_or(IdleSamples());
  }

  std::map<int64_t, int64_t> CountBySecond(const IdleSamples& idle) {
    std::map<int64_t, int64_t> counts;
    for (const SqlPart& part : idle.parts) {
      auto rows = store_->Query(
          fmt::format("SELECT time_ns // 1000000000 AS second, count(*) FROM {} GROUP BY second", part.text),
          part.parameters);
      EXPECT_TRUE(rows.has_value()) << rows.error().message;
      while (rows.has_value() && (*rows)->Next().value_or(false))
        counts[(*rows)->Int64(0)] += (*rows)->Int64(1);
    }
    return counts;
  }

  std::mt19937 random_{7};
  std::vector<TimeRange> times_;
  std::vector<model::Sample> samples_;
  std::map<int64_t, int64_t> idle_in_;  // samples by second
};

TEST_F(GpuIdle, DoesNotDependOnTheSlices) {
  AddWork(60);
  ASSERT_GT(idle_in_.size(), 30);
  for (const int64_t slice_rows : {10, 70, 1'000'000}) {
    const IdleSamples idle = Idle({.slice_rows = slice_rows, .rows = kAll, .seconds = 1});
    EXPECT_EQ(idle.parts.size() > 1, slice_rows < 1'000);
    EXPECT_EQ(idle.one_second_in, 1);
    EXPECT_EQ(CountBySecond(idle), idle_in_) << slice_rows << " rows a slice";
  }
}

// Each sampled second is answered as if all were read, and the seconds are as many as promised.
TEST_F(GpuIdle, SampledSecondsAreExact) {
  AddWork(600);
  for (const int64_t rows : {1'000, 300}) {
    const IdleSamples idle = Idle({.slice_rows = 100, .rows = rows, .seconds = 10});
    const int64_t work =
        50 + std::ranges::count_if(times_, [](const TimeRange& time) { return time.to_ns > time.from_ns; });
    const int64_t expected = (work - 1) / rows + 1;
    EXPECT_EQ(idle.one_second_in, expected);
    const std::map<int64_t, int64_t> counts = CountBySecond(idle);
    EXPECT_NEAR(static_cast<double>(counts.size()),
                static_cast<double>(idle_in_.size()) / static_cast<double>(expected), 8);
    for (const auto& [second, count] : counts) EXPECT_EQ(count, idle_in_[second]) << "second " << second;
  }
}

TEST_F(GpuIdle, ShortTimesAreReadWhole) {
  AddWork(60);
  EXPECT_EQ(Idle({.slice_rows = 100, .rows = 1, .seconds = 60}).one_second_in, 1);
  EXPECT_EQ(Idle({.slice_rows = 100, .rows = 1, .seconds = 15}).one_second_in, 3) << "of 59 s";
}

}  // namespace
}  // namespace gpusonde::store
