// SPDX-License-Identifier: Apache-2.0
// The parts of the governor together, as control.cpp joins them, over a program in simulated time whose CUPTI
// has a known cost that nothing reports. bench/overhead_bench.py measures the same with the library itself.
#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "inject/cost_estimate.h"
#include "inject/governor.h"
#include "inject/step_marks.h"

namespace gpusonde::inject {
namespace {

constexpr double kTickNs = 250e6;
constexpr int kKernelsInStep = 20;
constexpr double kWorkNs = 200'000;  // before each launch

// A program that launches kernels, each after some work whose length varies, and is profiled.
class Program {
 public:
  Program(double cost_ns, double noise, uint32_t seed) : cost_ns_(cost_ns), noise_(0, noise), random_(seed) {}

  void RunFor(double seconds, double budget) {
    const double end_ns = now_ns_ + seconds * 1e9;
    BeginWindow();
    while (now_ns_ < end_ns) {
      Launch(true);
      if (now_ns_ < next_tick_ns_) continue;
      next_tick_ns_ = now_ns_ + kTickNs;
      if (now_ns_ < window_ends_ns_) continue;
      const StepMarks::Window marks = marks_->EndWindow();
      if (sleep_.until_ns != 0) {
        sleep_.after[0] = marks.first;
        sleep_.after[1] = marks.middle;
        estimate_.Add(sleep_);
      }
      sleep_ = {};
      const auto now = static_cast<uint64_t>(now_ns_);
      const Governor::Decision decision =
          governor_.Decide({.awake_ns = now - static_cast<uint64_t>(window_ns_),
                            .measured_ns = 1'000'000,
                            .records = records_,
                            .marks = marks.runs,
                            .since_wake_ns = now - static_cast<uint64_t>(woke_ns_)},
                           estimate_.Estimate(), budget);
      length_ns_ = decision.next_window_ns;
      if (decision.sleep_ns != 0) {
        sleep_ = {.before = {marks.middle, marks.last}, .from_ns = now};
        const double wake_ns = now_ns_ + static_cast<double>(decision.sleep_ns);
        while (now_ns_ < wake_ns || now_ns_ < next_tick_ns_) {
          Launch(false);
          if (now_ns_ >= next_tick_ns_ && now_ns_ < wake_ns) next_tick_ns_ = now_ns_ + kTickNs;
        }
        sleep_.until_ns = static_cast<uint64_t>(now_ns_);
        woke_ns_ = now_ns_;
      }
      BeginWindow();
    }
  }

  CostEstimate::Interval Estimate() const { return estimate_.Estimate(); }
  double SpentByGovernor() const { return governor_.use().spent; }
  // As a share of the time without profiling.
  double ReallySpent() const { return overhead_ns_ / (now_ns_ - overhead_ns_); }

 private:
  void Launch(bool awake) {
    now_ns_ += kWorkNs * noise_(random_);
    if (awake) {
      now_ns_ += cost_ns_;
      overhead_ns_ += cost_ns_;
    }
    ++number_;
    if (!awake) return;
    ++records_;
    marks_->Add(1, number_ % kKernelsInStep == 0 ? 2 : 1, static_cast<int64_t>(number_),
                static_cast<uint64_t>(now_ns_));
  }

  void BeginWindow() {
    window_ns_ = now_ns_;
    window_ends_ns_ = now_ns_ + static_cast<double>(length_ns_);
    records_ = 0;
    marks_->BeginWindow(static_cast<uint64_t>(now_ns_), length_ns_);
  }

  double cost_ns_;
  std::lognormal_distribution<double> noise_;
  std::mt19937 random_;
  Governor governor_;
  CostEstimate estimate_;
  CostEstimate::Sleep sleep_;
  std::unique_ptr<StepMarks> marks_ = std::make_unique<StepMarks>();
  double now_ns_ = 1e9, next_tick_ns_ = 0, window_ns_ = 0, window_ends_ns_ = 0, woke_ns_ = 1e9;
  double overhead_ns_ = 0;
  uint64_t length_ns_ = Governor::kWindowNs;
  uint64_t number_ = 0, records_ = 0;
};

TEST(ProfilingOverhead, IsFoundWithinAFifthAndTheBudgetIsKept) {
  constexpr double kBudgetOfOnePercent = 0.01;
  for (const double cost_ns : {4000.0, 8000.0, 32'000.0}) {
    Program program(cost_ns, 0.3, 7);
    program.RunFor(300, kBudgetOfOnePercent);
    const CostEstimate::Interval found = program.Estimate();
    const double cost = cost_ns / kWorkNs / 1.046;  // the mean of the noise is exp(0.3² / 2)
    ASSERT_TRUE(found.known());
    EXPECT_NEAR(found.cost, cost, cost / 5) << cost_ns;
    EXPECT_LE(found.low, cost * 1.02);
    EXPECT_GE(found.high, cost * 0.98);
    EXPECT_LE(program.SpentByGovernor(), kBudgetOfOnePercent * 1.001);
    EXPECT_LE(program.ReallySpent(), kBudgetOfOnePercent * 1.1) << "the first windows included";
    EXPECT_GE(program.ReallySpent(), kBudgetOfOnePercent * 0.7);
  }
}

// Twenty times what a record is taken to cost until the pace shows it: a fifth of the program's time.
TEST(ProfilingOverhead, IsWithinTheBudgetAfterTwoMinutesThoughUnknownAtFirst) {
  constexpr double kBudgetOfOnePercent = 0.01;
  Program program(40'000, 0.3, 7);
  program.RunFor(120, kBudgetOfOnePercent);
  EXPECT_TRUE(program.Estimate().known());
  EXPECT_LE(program.SpentByGovernor(), kBudgetOfOnePercent * 1.02);
  EXPECT_LE(program.ReallySpent(), kBudgetOfOnePercent * 1.1) << "a window included that is not paid yet";
}

TEST(ProfilingOverhead, OfNothingKeepsProfilingActive) {
  Program program(0, 0.3, 7);
  program.RunFor(300, Governor::kDefaultBudget);
  const CostEstimate::Interval found = program.Estimate();
  ASSERT_TRUE(found.known());
  EXPECT_LE(found.high, Governor::kDefaultBudget) << "so the trials have become rare";
  EXPECT_LE(program.SpentByGovernor(), 0.001);
}

}  // namespace
}  // namespace gpusonde::inject
