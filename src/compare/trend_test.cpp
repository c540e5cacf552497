// SPDX-License-Identifier: Apache-2.0
#include "compare/trend.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/html.h"
#include "compare/change_points.h"

namespace gpusonde::compare {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// In a test, Run is a function of gtest.
using Runs = std::vector<Run>;

// Runs of kernels whose durations vary from run to run, one of which is slower from some run on.
struct MadeTrend {
  int runs = 14;
  int kernels = 20;
  double between_runs = 0.01;
  double slower = 1;  // of the last kernel
  int from = 8;       // and from this run, from 0
};

std::vector<Run> MakeTrend(const MadeTrend& made, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, made.between_runs);
  std::vector<Run> runs;
  for (int i = 0; i < made.runs; ++i) {
    Run run;
    run.paths = {"night" + std::to_string(i)};
    run.ranks = 1;
    for (int k = 0; k < made.kernels; ++k) {
      const bool is_slower = k + 1 == made.kernels && i >= made.from;
      const double log = std::log(1000. * (k + 1) * (is_slower ? made.slower : 1)) + normal(random);
      Kernel& kernel = run.kernels["kernel" + std::to_string(k)];
      kernel.groups[1] = {.count = 100, .total_ns = 100 * std::exp(log), .log_mean = log};
      kernel.amount = {.count = 100, .total_ns = std::llround(kernel.groups[1].total_ns)};
      run.times.span_ns += kernel.groups[1].total_ns;
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

const Series& FindSeries(const Trend& trend, SeriesKind kind, std::string_view name = "") {
  return *std::ranges::find_if(
      trend.series, [&](const Series& series) { return series.kind == kind && series.name == name; });
}

TEST(FindStretch, FindsThePlaceOfAChangeWithItsError) {
  const std::vector<double> values = {1, 3, 1, 3, 11, 13, 11, 13};
  const std::optional<Stretch> found = FindStretch(values, 0);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->from, 4u);
  EXPECT_EQ(found->to, 8u);
  EXPECT_DOUBLE_EQ(found->difference, 10);
  EXPECT_DOUBLE_EQ(found->error, std::sqrt(8. / 6 * (0.25 + 0.25)));
  EXPECT_DOUBLE_EQ(found->freedom, 6);
  EXPECT_LT(found->p, 0.002);
  EXPECT_EQ(FindStretch(values, 10.5)->p, 1);
}

TEST(FindStretch, FindsAChangeThatIsTakenBack) {
  const std::optional<Stretch> found =
      FindStretch(std::vector<double>{1, 3, 1, 3, 11, 13, 11, 13, 1, 3, 1, 3}, 0);
  EXPECT_EQ(found->from, 4u);
  EXPECT_EQ(found->to, 8u);
  EXPECT_LT(found->p, 0.001);
}

TEST(FindStretch, FindsNothingInFewOrEqualValues) {
  EXPECT_FALSE(FindStretch(std::vector<double>{1, 2, 3}, 0).has_value());
  EXPECT_EQ(FindStretch(std::vector<double>(9, 1.), 0.01)->p, 1);
  EXPECT_EQ(FindStretch(std::vector<double>(9, 0.1), 0)->p, 1);
}

// Its p is a bound, so chance is below it.
TEST(FindStretch, ReportsChangesByChanceAtMostAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  constexpr int kSequences = 4000;
  for (const size_t length : {4u, 6u, 12u, 40u}) {
    int reported = 0;
    for (int i = 0; i < kSequences; ++i) {
      std::vector<double> values(length);
      for (double& value : values) value = normal(random);
      reported += FindStretch(values, 0)->p <= 0.05 ? 1 : 0;
    }
    EXPECT_LE(reported, kSequences / 20) << length;
    EXPECT_GE(reported, kSequences / 200) << length;  // else it would find nothing
  }
}

TEST(Trend, ReportsAnythingInFewSequencesOfEqualRuns) {
  int with_changes = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Trend trend = FollowRuns(MakeTrend({}, seed), {.min_change = 0});
    with_changes += std::ranges::any_of(trend.series, [](const Series& s) { return !s.changes.empty(); });
  }
  EXPECT_LE(with_changes, 50);
}

TEST(Trend, FindsTheRunSinceWhichAKernelTakesFivePercentLonger) {
  const MadeTrend made{.runs = 20, .slower = 1.05, .from = 12};
  int found = 0, at_the_run = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const Trend trend = FollowRuns(MakeTrend(made, seed), {});
    const Series& planted = FindSeries(trend, SeriesKind::kKernel, "kernel19");
    if (planted.changes.size() != 1) continue;
    ++found;
    at_the_run += planted.changes[0].run == 12 ? 1 : 0;
    EXPECT_NEAR(planted.changes[0].ratio, 1.05, 0.03);
    EXPECT_NEAR(planted.changes[0].cost_ns(), 2'000'000 * 0.05, 2'000'000 * 0.03);
  }
  EXPECT_GE(found, 190);
  EXPECT_GE(at_the_run, 170);
}

TEST(Trend, KernelsTogetherTakeTheSumOfTheirTimes) {
  const Trend trend = FollowRuns(MakeTrend({.slower = 4, .from = 7}, 1), {});
  const Series& all = FindSeries(trend, SeriesKind::kDuration, "");
  ASSERT_EQ(all.changes.size(), 1u);
  EXPECT_NEAR(all.changes[0].ratio, 1 + 20. / 210 * 3, 0.01);
  const Series& planted = FindSeries(trend, SeriesKind::kKernel, "kernel19");
  EXPECT_NEAR(planted.changes[0].ratio, 4, 0.1);
}

TEST(Trend, FindsTwoChanges) {
  Runs runs = MakeTrend({.runs = 30, .slower = 1.2, .from = 10}, 1);
  const Runs before = MakeTrend({.runs = 30}, 2);
  std::copy(before.begin() + 20, before.end(), runs.begin() + 20);
  const Trend trend = FollowRuns(std::move(runs), {});
  const Series& planted = FindSeries(trend, SeriesKind::kKernel, "kernel19");
  ASSERT_EQ(planted.changes.size(), 2u);
  EXPECT_EQ(planted.changes[0].run, 10u);
  EXPECT_NEAR(planted.changes[0].ratio, 1.2, 0.02);
  EXPECT_EQ(planted.changes[1].run, 20u);
  EXPECT_NEAR(planted.changes[1].ratio, 1 / 1.2, 0.02);
}

TEST(Trend, OneSlowRunIsNoChange) {
  Runs runs = MakeTrend({}, 1);
  runs[5] = MakeTrend({.slower = 1.5, .from = 0}, 3)[5];
  EXPECT_THAT(FindSeries(FollowRuns(std::move(runs), {}), SeriesKind::kKernel, "kernel19").changes,
              IsEmpty());
}

TEST(Trend, RunsAreSortedByStart) {
  Runs runs = MakeTrend({.runs = 4}, 1);
  for (size_t i = 0; i < runs.size(); ++i)
    runs[i].start_ns = 1'000'000'000'000'000'000 - static_cast<int64_t>(i);
  const Trend sorted = FollowRuns(runs, {});
  EXPECT_TRUE(sorted.by_start);
  EXPECT_THAT(sorted.runs.front().paths, ElementsAre("night3"));
  runs[2].start_ns.reset();
  const Trend given = FollowRuns(runs, {});
  EXPECT_FALSE(given.by_start);
  EXPECT_THAT(given.runs.front().paths, ElementsAre("night0"));
}

TEST(Trend, MoreWorkIsNotMoreTime) {
  Runs runs = MakeTrend({.between_runs = 0.001}, 1);
  for (auto& run : runs) {
    const bool twice = &run - runs.data() >= 7;
    if (!twice) continue;
    run.times.span_ns *= 2;
    for (auto& [name, kernel] : run.kernels) {
      kernel.amount = {.count = 2 * kernel.amount.count, .total_ns = 2 * kernel.amount.total_ns};
      kernel.groups[1].count *= 2;
      kernel.groups[1].total_ns *= 2;
    }
  }
  const Trend trend = FollowRuns(std::move(runs), {});
  EXPECT_THAT(FindSeries(trend, SeriesKind::kPace).changes, IsEmpty());
  EXPECT_NEAR(*trend.runs.back().work / *trend.runs.front().work, 2, 1e-9);
}

TEST(TrendText, SaysWhichRunBroughtWhatAndWhatItCosts) {
  const Trend trend = FollowRuns(MakeTrend({.slower = 1.5}, 1), {});
  const std::string text = ToText(trend);
  EXPECT_THAT(text, HasSubstr("- From run 9 on (night8), kernel19 takes "));
  EXPECT_THAT(text, HasSubstr("14 runs, in the order of their names"));
  const std::string page = ToHtml(trend);
  for (const std::string& sentence : SentencesOf(trend))
    EXPECT_THAT(page, HasSubstr("<li>" + SentenceHtml(sentence)));
}

TEST(TrendText, NamesAreEscaped) {
  Runs runs = MakeTrend({}, 1);
  for (auto& run : runs) {
    run.paths = {"<b>\x1b[2J"};
    run.kernels["<script>\x1b"] = run.kernels["kernel1"];
  }
  const Trend trend = FollowRuns(std::move(runs), {});
  for (const std::string& text : {ToText(trend), ToHtml(trend)})
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(ToHtml(trend), Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace gpusonde::compare
