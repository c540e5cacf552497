// SPDX-License-Identifier: Apache-2.0
#include "inject/cost_estimate.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace gpusonde::inject {
namespace {

constexpr double kSecond = 1e9;
constexpr uint64_t kKernelsPerStep = 20;

// A program whose steps take `step_ns(now)` without profiling, and `cost` more with; its marks are the first
// kernels of its steps.
class Steps {
 public:
  Steps(double cost, std::function<double(double)> step_ns) : cost_(cost), step_ns_(std::move(step_ns)) {}

  // The next window: 2 s awake, and a sleep of `seconds` before it.
  bool SleepFor(double seconds) {
    CostEstimate::Sleep sleep;
    sleep.before[0] = middle_;
    sleep.before[1] = last_;
    sleep.from_ns = static_cast<uint64_t>(now_);
    Run(seconds * kSecond, false);
    sleep.until_ns = static_cast<uint64_t>(now_);
    Run(2 * kSecond, true);
    sleep.after[0] = first_;
    sleep.after[1] = middle_;
    return estimate_.Add(sleep);
  }

  // Awake or not, in small parts, so that a step may begin awake and end asleep.
  void Run(double for_ns, bool awake) {
    const double begin = now_;
    first_ = awake ? CostEstimate::Mark{} : first_;
    middle_ = awake ? CostEstimate::Mark{} : middle_;
    while (now_ < begin + for_ns) {
      const double pace = step_ns_(now_) * (awake ? 1 + cost_ : 1);
      const double left = (1 - done_) * pace;
      if (now_ + left > begin + for_ns) {
        done_ += (begin + for_ns - now_) / pace;
        now_ = begin + for_ns;
        return;
      }
      now_ += left;
      done_ = 0;
      number_ += kKernelsPerStep;
      if (!awake) continue;
      last_ = {number_, static_cast<uint64_t>(now_)};
      if (first_.time_ns == 0) first_ = last_;
      if (middle_.time_ns == 0 && now_ >= begin + for_ns / 2) middle_ = last_;
    }
  }

  CostEstimate::Interval Estimate() const { return estimate_.Estimate(); }
  void set_cost(double cost) { cost_ = cost; }
  // Of the window before the next sleep.
  void LoseMiddleMark() { middle_ = {}; }

 private:
  CostEstimate estimate_;
  double cost_;
  std::function<double(double)> step_ns_;
  double now_ = kSecond, done_ = 0;
  uint64_t number_ = 1;
  CostEstimate::Mark first_, middle_, last_;
};

TEST(CostEstimate, KnowsNothingBeforeSixSleeps) {
  Steps program(0.02, [](double) { return 50e6; });
  program.Run(2 * kSecond, true);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(program.SleepFor(1));
  EXPECT_FALSE(program.Estimate().known());
  EXPECT_EQ(program.Estimate().high, 0);
  EXPECT_TRUE(program.SleepFor(1));
  EXPECT_TRUE(program.Estimate().known());
}

TEST(CostEstimate, IsExactForEvenSteps) {
  for (const double step_ns : {1e6, 7e6, 50e6, 230e6})
    for (const double cost : {0.0, 0.005, 0.02, 0.3}) {
      Steps program(cost, [step_ns](double) { return step_ns; });
      program.Run(2 * kSecond, true);
      for (int i = 0; i < 8; ++i) ASSERT_TRUE(program.SleepFor(1 + 0.37 * i));
      const CostEstimate::Interval found = program.Estimate();
      EXPECT_NEAR(found.cost, cost, 1e-6) << step_ns;
      EXPECT_NEAR(found.low, cost, 1e-6);
      EXPECT_NEAR(found.high, cost, 1e-6);
    }
}

// The medians of 200 programs whose steps vary, and how often their intervals contain the cost.
TEST(CostEstimate, ContainsTheCostOfProgramsWithNoise) {
  constexpr int kPrograms = 200;
  constexpr double kCost = 0.02;
  int contained = 0;
  double sum = 0;
  for (int seed = 0; seed < kPrograms; ++seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::lognormal_distribution<double> noise(0, 0.1);
    Steps program(kCost, [&](double) { return 20e6 * noise(random); });
    program.Run(2 * kSecond, true);
    for (int i = 0; i < 24; ++i) program.SleepFor(1.1);
    const CostEstimate::Interval found = program.Estimate();
    ASSERT_TRUE(found.known());
    if (found.low <= kCost && kCost <= found.high) ++contained;
    sum += found.cost;
  }
  EXPECT_GE(contained, kPrograms * 9 / 10);
  EXPECT_NEAR(sum / kPrograms, kCost, kCost / 10);
}

// It becomes slower all the time, and at once, by far more than profiling costs.
TEST(CostEstimate, IsNotTakenInByAProgramThatChanges) {
  Steps drifting(0.02, [](double now) { return 10e6 * (1 + now / kSecond / 100); });
  Steps jumping(0.02, [](double now) { return now < 40 * kSecond ? 10e6 : 30e6; });
  for (Steps* program : {&drifting, &jumping}) {
    program->Run(2 * kSecond, true);
    for (int i = 0; i < 24; ++i) program->SleepFor(1.1);
    EXPECT_NEAR(program->Estimate().cost, 0.02, 0.001);
  }
  EXPECT_EQ(jumping.Estimate().pairs, 23U) << "the sleep in which it jumped";
}

// Slower for 3 s of every 7.3 s, for reasons of its own, out of step with the windows.
TEST(CostEstimate, AdmitsNotToKnowWhereTheProgramVariesByItself) {
  Steps program(0, [](double now) { return std::fmod(now, 7.3 * kSecond) < 3 * kSecond ? 11e6 : 10e6; });
  program.Run(2 * kSecond, true);
  for (int i = 0; i < 32; ++i) program.SleepFor(1.1);
  const CostEstimate::Interval found = program.Estimate();
  EXPECT_LE(found.low, 0);
  EXPECT_GE(found.high, 0);
  EXPECT_FALSE(found.significant());
}

TEST(CostEstimate, LeavesOutSleepsWithoutMarks) {
  Steps program(0.02, [](double) { return 50e6; });
  program.Run(2 * kSecond, true);
  program.LoseMiddleMark();
  EXPECT_FALSE(program.SleepFor(1)) << "none in the second half of the window before";
  CostEstimate estimate;
  EXPECT_FALSE(estimate.Add({}));
  // The numbers went backwards: another context, or a counter that doesn't count.
  EXPECT_FALSE(estimate.Add(
      {.before = {{10, 100}, {20, 200}}, .from_ns = 210, .until_ns = 300, .after = {{5, 310}, {15, 410}}}));
  // They stood still while asleep: the counter counts consumers' kernels only.
  EXPECT_FALSE(estimate.Add({.before = {{10, 100}, {20, 200}},
                             .from_ns = 210,
                             .until_ns = 1000,
                             .after = {{21, 1010}, {31, 1110}}}));
}

TEST(CostEstimate, FollowsAProgramThatChangesItsCost) {
  Steps program(0.02, [](double) { return 10e6; });
  program.Run(2 * kSecond, true);
  for (int i = 0; i < 10; ++i) program.SleepFor(1);
  program.set_cost(0.1);
  for (uint32_t i = 0; i < CostEstimate::kPairs + 1; ++i) program.SleepFor(1);
  EXPECT_NEAR(program.Estimate().low, 0.1, 0.01);
}

}  // namespace
}  // namespace gpusonde::inject
