// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "compare/between_runs.h"
#include "compare/single_runs.h"
#include "compare/testing/made_run.h"
#include "compare/typical_variance.h"

namespace gpusonde::compare {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Runs whose kernels all take longer or shorter by a percentage of their own, and each by another one.
Runs MakeRuns(const MadeRun& made, int count, double between_runs, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  Runs runs;
  for (int i = 0; i < count; ++i) {
    Run run = Make(made, random());
    const double of_run = 0.7 * between_runs * normal(random);
    double all_ns = 0;
    for (auto& [name, kernel] : run.kernels) {
      const double slower = of_run + 0.7 * between_runs * normal(random);
      KernelGroup& group = kernel.groups.at(1);
      group.log_mean += slower;
      group.total_ns *= std::exp(slower);
      kernel.amount.total_ns = std::llround(group.total_ns);
      all_ns += group.total_ns;
    }
    run.times = {.span_ns = 1.1 * all_ns, .compute_ns = all_ns, .idle_host_ns = 0.1 * all_ns};
    runs.push_back(std::move(run));
  }
  return runs;
}

// How many kernels are said to have changed.
int64_t ChangesOf(const Comparison& comparison) {
  return std::ranges::count_if(comparison.kernels,
                               [](const KernelLine& kernel) { return kernel.change != Change::kNone; });
}

const KernelLine& Find(const Comparison& comparison, const std::string& name) {
  return *std::ranges::find_if(comparison.kernels,
                               [&](const KernelLine& kernel) { return kernel.line.name == name; });
}

TEST(Compare, ReportsAnythingInFewPairsOfEqualRuns) {
  constexpr uint64_t kPairs = 200;
  int with_changes = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Comparison comparison = CompareTwo(Make({}, 2 * pair), Make({}, 2 * pair + 1), {});
    with_changes += ChangesOf(comparison) > 0 ? 1 : 0;
  }
  EXPECT_LE(with_changes, 10);
}

TEST(Compare, FindsAKernelThatTakesFivePercentLonger) {
  constexpr uint64_t kPairs = 200;
  int found = 0, others = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Comparison comparison = CompareTwo(Make({}, 2 * pair), Make({.slower = 1.05}, 2 * pair + 1), {});
    const KernelLine& planted = Find(comparison, "kernel19");
    found += planted.change == Change::kSlower ? 1 : 0;
    others += static_cast<int>(ChangesOf(comparison)) - (planted.change != Change::kNone ? 1 : 0);
    ASSERT_TRUE(planted.duration.has_value());
    EXPECT_NEAR(planted.duration->ratio, 1.05, 0.03);
  }
  EXPECT_GE(found, 190);
  EXPECT_LE(others, 20);
}

bool ReportsAnything(const Comparison& comparison) {
  return ChangesOf(comparison) > 0 || comparison.pace->significant || comparison.duration->significant;
}

TEST(Compare, VariationBetweenRunsIsNoChange) {
  constexpr uint64_t kPairs = 200;
  int of_single_runs = 0, of_several = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Runs single = MakeRuns({}, 2, 0.007, kPairs + pair);
    of_single_runs += ReportsAnything(CompareTwo(single.front(), single.back(), {})) ? 1 : 0;
    const Runs runs = MakeRuns({}, 8, 0.02, pair);
    const Comparison several = Compare({runs.begin(), runs.begin() + 4}, {runs.begin() + 4, runs.end()}, {});
    of_several += ReportsAnything(several) ? 1 : 0;
    ASSERT_TRUE(several.pace->between_runs.has_value());
  }
  EXPECT_LE(of_single_runs, 10);
  EXPECT_LE(of_several, 10);
}

TEST(Compare, SeveralRunsFindAKernelThatTakesFivePercentLonger) {
  constexpr uint64_t kPairs = 200;
  int found = 0;
  double variance = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Comparison comparison =
        Compare(MakeRuns({}, 5, 0.005, 2 * pair), MakeRuns({.slower = 1.05}, 5, 0.005, 2 * pair + 1), {});
    const KernelLine& planted = Find(comparison, "kernel19");
    found += planted.change == Change::kSlower ? 1 : 0;
    ASSERT_TRUE(planted.duration->between_runs.has_value());
    variance += *planted.duration->between_runs * *planted.duration->between_runs / kPairs;
  }
  EXPECT_GE(found, 190);
  // 0.5 % between runs, and what is left of 5 % and of the drift in the mean of 640 launches.
  EXPECT_NEAR(std::sqrt(variance), 0.006, 0.001);
}

TEST(Compare, OneRunOfEachFindsAKernelThatTakesFivePercentLonger) {
  constexpr uint64_t kPairs = 200;
  constexpr double kBetweenRuns = 0.007;
  int found = 0, others = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Comparison comparison = Compare(MakeRuns({}, 1, kBetweenRuns, 2 * pair),
                                          MakeRuns({.slower = 1.05}, 1, kBetweenRuns, 2 * pair + 1), {});
    const KernelLine& planted = Find(comparison, "kernel19");
    found += planted.change == Change::kSlower ? 1 : 0;
    others += ChangesOf(comparison) > (planted.change == Change::kSlower ? 1 : 0) ? 1 : 0;
  }
  EXPECT_GE(found, 190);
  EXPECT_LE(others, 10);
}

TEST(Compare, OneRunOfEachTellsAChangeOfAllKernelsOnlyIfItIsLarge) {
  const auto with = [](double slower) {
    compare::Run b = Make({}, 2);
    for (auto& [name, kernel] : b.kernels) kernel.groups.at(1).log_mean += std::log(slower);
    b.times.span_ns *= slower;
    return CompareTwo(Make({}, 1), std::move(b), {});
  };
  EXPECT_FALSE(with(1.03).duration->significant);
  EXPECT_FALSE(with(1.03).pace->significant);
  EXPECT_EQ(ChangesOf(with(1.03)), 0);
  EXPECT_TRUE(with(1.1).duration->significant);
  EXPECT_TRUE(with(1.1).pace->significant);
}

TEST(SingleRuns, WhatKernelsDoTogetherIsNoSpread) {
  SingleRuns runs;
  for (int i = 0; i < 20; ++i) runs.Add(0.01 + (i % 2 == 0 ? 0.003 : -0.003), 1e-8);
  runs.Finish();
  EXPECT_NEAR(runs.shift(), 0.01, 0.004);
  EXPECT_NEAR(std::sqrt(runs.of_each().variance), 1.4826 * 0.003, 0.006);
  EXPECT_GT(runs.of_each().freedom, 5);
}

TEST(SingleRuns, AFewKernelsThatChangedDoNotHideThemselves) {
  SingleRuns runs, with_changes;
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal(0, 0.005);
  for (int i = 0; i < 40; ++i) {
    const double change = normal(random);
    runs.Add(change, 1e-8);
    with_changes.Add(change + (i < 5 ? 0.2 : 0), 1e-8);
  }
  runs.Finish();
  with_changes.Finish();
  EXPECT_LT(with_changes.of_each().variance, 2 * runs.of_each().variance);
  EXPECT_LT(with_changes.shift(), 0.005);
}

TEST(SingleRuns, OfFewKernelsOrGreatChangesTheAssumptionIsTheBound) {
  SingleRuns few;
  for (size_t i = 0; i + 1 < SingleRuns::kMinKernels; ++i) few.Add(0.3, 1e-8);
  few.Finish();
  EXPECT_EQ(few.shift(), 0);
  EXPECT_EQ(few.of_each().variance, SingleRuns::OfAll().variance);
  SingleRuns great;
  for (int i = 0; i < 20; ++i) great.Add(i % 2 == 0 ? -0.5 : -0.3, 1e-8);
  great.Finish();
  EXPECT_NEAR(great.shift(), -2 * std::sqrt(SingleRuns::OfAll().variance), 1e-12);
  EXPECT_NEAR(great.of_each().variance, 4 * SingleRuns::OfAll().variance, 1e-12);
}

TEST(Compare, ThreeRunsFindAKernelThatTakesFivePercentLonger) {
  constexpr uint64_t kPairs = 200;
  int found = 0, others = 0, of_equal = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Runs before = MakeRuns({}, 3, 0.007, 3 * pair);
    const Comparison comparison = Compare(before, MakeRuns({.slower = 1.05}, 3, 0.007, 3 * pair + 1), {});
    const bool is_found = Find(comparison, "kernel19").change == Change::kSlower;
    found += is_found ? 1 : 0;
    others += ChangesOf(comparison) > (is_found ? 1 : 0) ? 1 : 0;
    of_equal += ReportsAnything(Compare(before, MakeRuns({}, 3, 0.007, 3 * pair + 2), {})) ? 1 : 0;
  }
  EXPECT_GE(found, 190);
  EXPECT_LE(others, 10);
  EXPECT_LE(of_equal, 10);
}

TEST(TypicalVariance, IsThatOfAlikeKernels) {
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  const auto of = [&](double spread) {
    TypicalVariance typical;
    for (int i = 0; i < 400; ++i) {
      double squares = 0;
      for (int j = 0; j < 4; ++j) squares += std::pow(normal(random), 2);
      typical.Add(9 * std::exp(spread * normal(random)) * squares / 4, 4);
    }
    typical.Finish();
    return typical;
  };
  const TypicalVariance alike = of(0), different = of(2);
  EXPECT_NEAR(alike.variance(), 9, 1);
  EXPECT_GT(alike.freedom(), 40);
  EXPECT_LT(different.freedom(), 3);
  const analyze::MeanError moderated = alike.Moderate({.variance = 90, .freedom = 4});
  EXPECT_DOUBLE_EQ(moderated.freedom, alike.freedom() + 4);
  EXPECT_LT(moderated.variance, 20);
  EXPECT_GT(different.Moderate({.variance = 90, .freedom = 4}).variance, 50);
}

TEST(TypicalVariance, OfFewKernelsNothingIsKnown) {
  TypicalVariance typical;
  for (size_t i = 0; i + 1 < TypicalVariance::kMinKernels; ++i) typical.Add(1, 4);
  typical.Add(0, 4);
  typical.Add(1, 0);
  typical.Finish();
  EXPECT_EQ(typical.freedom(), 0);
  EXPECT_EQ(typical.Moderate({.variance = 2, .freedom = 3}).variance, 2);
  EXPECT_EQ(typical.Moderate({.variance = 2, .freedom = 3}).freedom, 3);
}

TEST(Compare, FiguresOfSeveralRunsAreMeans) {
  const Runs runs = MakeRuns({}, 3, 0.01, 1);
  const Comparison one = CompareTwo(runs[0], runs[0], {});
  const Comparison several = Compare({runs[0]}, {runs[0], runs[0], runs[0]}, {});
  EXPECT_EQ(several.a.runs, 1);
  EXPECT_EQ(several.b.runs, 3);
  EXPECT_DOUBLE_EQ(*several.work, 1);
  EXPECT_DOUBLE_EQ(several.pace->ratio, 1);
  for (size_t i = 0; i < one.kernels.size(); ++i) {
    EXPECT_DOUBLE_EQ(several.kernels[i].line.count_b, 640);
    EXPECT_NEAR(several.kernels[i].line.more_ns(), 0, 1);
  }
  EXPECT_NEAR(several.times.front().more_ns(), 0, 1);
}

TEST(Compare, SeveralRunsTestKernelsWithFewLaunches) {
  Runs a = MakeRuns({}, 3, 0.002, 1), b = MakeRuns({}, 3, 0.002, 2);
  double log = std::log(1e6);
  for (auto* const side : {&a, &b})
    for (auto& run : *side) {
      log += side == &a ? 0.001 : -0.001;
      const double shifted = log + (side == &b ? std::log(1.3) : 0);
      run.kernels["rare"] = {.amount = {.count = 2, .total_ns = 2'000'000}};
      run.kernels["rare"].groups[1] = {.count = 2, .total_ns = 2 * std::exp(shifted), .log_mean = shifted};
      run.progress = {};
    }
  const Comparison comparison = Compare(a, b, {});
  EXPECT_EQ(Find(comparison, "rare").change, Change::kSlower);
  EXPECT_TRUE(comparison.pace.has_value());
  EXPECT_FALSE(Find(CompareTwo(a[0], b[0], {}), "rare").duration.has_value());
}

TEST(Compare, KernelsThatOnlySomeRunsOfASideHaveAreNoChange) {
  Runs a = MakeRuns({}, 3, 0.002, 1), b = MakeRuns({}, 3, 0.002, 2);
  for (auto& run : b) run.kernels["new"] = {.amount = {.count = 640, .total_ns = 1'000'000}};
  a[1].kernels["chosen by measuring"] = {.amount = {.count = 640, .total_ns = 1'000'000}};
  const Comparison comparison = Compare(std::move(a), std::move(b), {});
  EXPECT_EQ(Find(comparison, "new").change, Change::kOnlyInB);
  EXPECT_EQ(Find(comparison, "chosen by measuring").change, Change::kNone);
}

TEST(VariationOfRuns, IsPooledOverBothSides) {
  VariationOfRuns variation;
  variation.AddSide(std::vector<VariationOfRuns::Value>{{1, 1}, {3, 1}});
  variation.AddSide(std::vector<VariationOfRuns::Value>{{5, 2}, {5, 2}, {8, 2}});
  // Squares 2 + 6 with 1 + 2 degrees of freedom.
  EXPECT_DOUBLE_EQ(*variation.Deviation(), std::sqrt(8. / 3));
  EXPECT_DOUBLE_EQ(variation.Error().variance, 8. / 3 * (1. / 2 + 1. / 3));
  EXPECT_DOUBLE_EQ(variation.Error().freedom, 3);
  VariationOfRuns single;
  for (int side = 0; side < 2; ++side) single.AddSide(std::vector<VariationOfRuns::Value>{{1, 1}});
  EXPECT_EQ(single.Error().freedom, 0);
  EXPECT_FALSE(single.Deviation().has_value());
}

// The share of pairs of runs in which the 95 % interval contains the ratio.
double CoverageWith(double drift) {
  constexpr uint64_t kPairs = 1000;
  double contained = 0;
  for (uint64_t pair = 0; pair < kPairs; ++pair) {
    const Comparison comparison =
        CompareTwo(Make({.kernels = 2, .drift = drift}, 2 * pair),
                   Make({.kernels = 2, .drift = drift, .slower = 1.2}, 2 * pair + 1), {});
    const Ratio& ratio = *Find(comparison, "kernel1").duration;
    contained += ratio.low <= 1.2 && 1.2 <= ratio.high ? 1 : 0;
  }
  return contained / kPairs;
}

TEST(Compare, IntervalsContainTheTrueRatio) {
  EXPECT_GE(CoverageWith(0.5), 0.94);
  // Drifts that last for a sixth of the run are hardly averaged out in it, but runs are assumed to differ.
  EXPECT_GE(CoverageWith(0.9), 0.94);
}

TEST(Compare, DividesByTheAmountOfWork) {
  const Comparison comparison = CompareTwo(Make({}, 1), Make({.launches = 1280}, 2), {});
  ASSERT_TRUE(comparison.work.has_value());
  EXPECT_DOUBLE_EQ(*comparison.work, 2);
  ASSERT_TRUE(comparison.pace.has_value());
  EXPECT_NEAR(comparison.pace->ratio, 1, 0.01);
  EXPECT_NEAR(comparison.times.front().b_ns / comparison.times.front().a_ns, 1, 0.01);
  EXPECT_EQ(ChangesOf(comparison), 0);
}

TEST(Compare, FindsAKernelThatIsLaunchedMoreOften) {
  const Comparison comparison = CompareTwo(Make({}, 1), Make({.more_launches = 1.5}, 2), {});
  EXPECT_EQ(Find(comparison, "kernel19").change, Change::kMoreLaunches);
  EXPECT_EQ(ChangesOf(comparison), 1);
  const Comparison back = CompareTwo(Make({.more_launches = 1.5}, 1), Make({}, 2), {});
  EXPECT_EQ(Find(back, "kernel19").change, Change::kFewerLaunches);
}

// As in a server whose requests differ.
TEST(Compare, CountsThatVaryOverTimeAreNoChange) {
  const MadeRun varying{.more_launches = 1.1, .variation = 0.04};
  EXPECT_EQ(ChangesOf(CompareTwo(Make({.variation = 0.04}, 1), Make(varying, 2), {})), 0);
  const MadeRun regular{.more_launches = 1.1, .variation = 0.01};
  EXPECT_EQ(ChangesOf(CompareTwo(Make({.variation = 0.01}, 1), Make(regular, 2), {})), 1);
}

TEST(Compare, TracesThatEndWithinAStepHaveNotMoreLaunches) {
  const MadeRun few{.launches = 33};
  EXPECT_EQ(ChangesOf(CompareTwo(Make(few, 1), Make({.launches = 33, .more_launches = 34. / 33}, 2), {})), 0);
}

TEST(Compare, TellsNoAmountOfWorkOfDifferentPrograms) {
  compare::Run other;
  for (auto& [name, kernel] : Make({}, 2).kernels) other.kernels["other_" + name] = kernel;
  other.paths = {"other"};
  other.ranks = 1;
  const Comparison comparison = CompareTwo(Make({}, 1), std::move(other), {});
  EXPECT_FALSE(comparison.work.has_value());
  EXPECT_FALSE(comparison.pace.has_value());
  EXPECT_EQ(Find(comparison, "kernel0").change, Change::kOnlyInA);
  EXPECT_EQ(Find(comparison, "other_kernel0").change, Change::kOnlyInB);
  EXPECT_THAT(ToText(comparison), HasSubstr("20 kernels only in A"));
}

TEST(Compare, ComparesAllLaunchesIfShapesDiffer) {
  compare::Run b = Make({.slower = 1.5}, 2);
  b.kernels["kernel19"].groups[2] = b.kernels["kernel19"].groups[1];
  b.kernels["kernel19"].groups.erase(1);
  const Comparison comparison = CompareTwo(Make({}, 1), std::move(b), {});
  const KernelLine& kernel = Find(comparison, "kernel19");
  EXPECT_TRUE(kernel.other_shapes);
  ASSERT_TRUE(kernel.duration.has_value());
  EXPECT_NEAR(kernel.duration->ratio, 1.5, 0.05);
  EXPECT_EQ(kernel.change, Change::kSlower);
}

// Each launch has a shape of its own, as in triangular loops.
TEST(Compare, ComparesShapesThatAreLaunchedOnce) {
  const auto make = [](double slower, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 0.02);
    compare::Run run = Make({.kernels = 1}, seed);
    Kernel& kernel = run.kernels["triangular"];
    for (uint32_t shape = 0; shape < 100; ++shape) {
      const double log = std::log(1'000. * (1 + shape) * slower) + noise(random);
      kernel.groups[shape] = {.count = 1, .total_ns = std::exp(log), .log_mean = log};
      ++kernel.amount.count;
      kernel.amount.total_ns += std::llround(std::exp(log));
    }
    return run;
  };
  const Comparison same = CompareTwo(make(1, 1), make(1, 2), {});
  EXPECT_EQ(Find(same, "triangular").change, Change::kNone);
  const Comparison slower = CompareTwo(make(1, 1), make(1.1, 2), {});
  EXPECT_EQ(Find(slower, "triangular").change, Change::kSlower);
  EXPECT_NEAR(Find(slower, "triangular").duration->ratio, 1.1, 0.01);
}

TEST(Compare, CommunicationIsNotJudged) {
  compare::Run a = Make({}, 1), b = Make({.slower = 2}, 2);
  for (compare::Run* const run : {&a, &b}) run->kernels["kernel19"].communication = true;
  const Comparison comparison = CompareTwo(std::move(a), std::move(b), {});
  EXPECT_FALSE(Find(comparison, "kernel19").duration.has_value());
  EXPECT_EQ(ChangesOf(comparison), 0);
}

TEST(Compare, SmallChangesAreIgnored) {
  const MadeRun exact{.noise = 1e-6, .drift = 0};
  compare::Run a = Make(exact, 1), b = Make({.noise = 1e-6, .drift = 0, .slower = 1.03}, 1);
  EXPECT_EQ(ChangesOf(CompareTwo(a, b, {})), 1);
  EXPECT_EQ(ChangesOf(CompareTwo(a, b, {.min_change = 0.05})), 0);
}

TEST(Compare, StepsTellTheAmountOfWorkWhereKernelsDiffer) {
  compare::Run a = Make({}, 1), b = MakeOther({}, 2);
  a.step_label = b.step_label = "ProfilerStep#";
  a.steps = 10;
  b.steps = 20;
  b.times.span_ns *= 3;
  const Comparison comparison = CompareTwo(a, b, {});
  EXPECT_TRUE(comparison.work_by_steps);
  EXPECT_DOUBLE_EQ(*comparison.work, 2);
  EXPECT_DOUBLE_EQ(comparison.pace->ratio, b.times.span_ns / 2 / a.times.span_ns);
  EXPECT_THAT(ToText(comparison), HasSubstr("more time than A for as many steps"));
  b.step_label = "train";
  EXPECT_FALSE(CompareTwo(std::move(a), std::move(b), {}).work.has_value());
}

TEST(Compare, AKernelWithMostOfTheTimeDoesNotOutvoteStepsAndAllOtherKernels) {
  // A step of B launches the last kernel three times where one of A does twice, and B has 1.5 times as many
  // steps.
  const MadeRun made{.kernels = 5, .slower = 10};
  MadeRun more = made;
  more.launches = made.launches * 3 / 2;
  more.more_launches = 1.5;
  compare::Run a = Make(made, 1), b = Make(more, 2);
  EXPECT_NEAR(*CompareTwo(a, b, {}).work, 2.25, 0.01) << "without steps, what takes the time decides";
  a.step_label = b.step_label = "step";
  a.steps = 100;
  b.steps = 150;
  const Comparison comparison = CompareTwo(a, b, {});
  EXPECT_TRUE(comparison.work_by_steps);
  EXPECT_DOUBLE_EQ(*comparison.work, 1.5);
  EXPECT_EQ(ChangesOf(comparison), 1);
  EXPECT_EQ(Find(comparison, "kernel4").change, Change::kMoreLaunches);
  b.steps = 100;  // of more work each
  EXPECT_FALSE(CompareTwo(std::move(a), std::move(b), {}).work_by_steps) << "no kernel agrees with the steps";
}

TEST(Compare, PhasesAreJudgedLikeKernels) {
  compare::Run a = Make({}, 1), b = Make({.slower = 1.5}, 2);
  for (compare::Run* const run : {&a, &b}) {
    run->phases["forward"] = run->kernels["kernel19"];
    run->phases["backward"] = run->kernels["kernel18"];
  }
  const Comparison comparison = CompareTwo(std::move(a), std::move(b), {});
  ASSERT_EQ(comparison.phases.size(), 2u);
  EXPECT_EQ(comparison.phases[0].line.name, "forward");
  EXPECT_EQ(comparison.phases[0].change, Change::kSlower);
  EXPECT_EQ(comparison.phases[1].change, Change::kNone);
  EXPECT_THAT(ToText(comparison), HasSubstr("- Phase forward takes "));
  EXPECT_THAT(ToHtml(comparison), HasSubstr("<h2>Phases</h2>"));
}

TEST(Compare, PhasesOfWhichOneSideLacksSomeAreNotCompared) {
  compare::Run a = Make({}, 1), b = Make({}, 2);
  a.phases["forward"] = a.kernels["kernel19"];
  b.all_phases = false;
  const Comparison comparison = CompareTwo(std::move(a), std::move(b), {});
  EXPECT_THAT(comparison.phases, IsEmpty());
  EXPECT_THAT(comparison.a.notes, IsEmpty());
  EXPECT_THAT(ToText(comparison), HasSubstr("Note: phases aren't compared"));
}

}  // namespace
}  // namespace gpusonde::compare
