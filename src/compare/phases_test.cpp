// SPDX-License-Identifier: Apache-2.0
#include "compare/phases.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace gpusonde::compare {
namespace {

TEST(Phases, AreTheRangesOfATraceByNameWithoutDigits) {
  analyze::StepCandidates ranges;
  const uint32_t step = ranges.Label("step 1"), other = ranges.Label("load");
  std::vector<importers::Range> added;
  for (int64_t i = 0; i < 100; ++i) {
    added.push_back({.start_ns = i * 1000, .end_ns = i * 1000 + 100 + i % 2, .process = 1, .label = step});
    added.push_back({.start_ns = i * 1000, .end_ns = i * 1000 + 50, .process = 2, .label = other});
  }
  ranges.Add(added);
  ranges.Finish();
  Kernels phases;
  AddPhases(ranges, phases);
  ASSERT_EQ(phases.size(), 2u);
  const Kernel& steps = phases.at("step ");
  EXPECT_EQ(steps.amount.count, 100);
  EXPECT_EQ(steps.amount.total_ns, 100 * 100 + 50);
  EXPECT_NEAR(std::exp(steps.groups.at(0).log_mean), 100.5, 0.2);
  EXPECT_GT(steps.groups.at(0).error.freedom, 0);
  EXPECT_GT(steps.groups.at(0).error.variance, 0);
  EXPECT_TRUE(ranges.HasAll());
}

TEST(Phases, AreNotAllThereIfAProcessHasTooManyRanges) {
  analyze::StepCandidates ranges;
  const uint32_t label = ranges.Label("step");
  std::vector<importers::Range> added;
  for (int64_t i = 0; i <= int64_t{analyze::StepCandidates::kMaxRanges}; ++i)
    added.push_back({.start_ns = i * 1000, .end_ns = i * 1000 + 100 + i, .process = 1, .label = label});
  ranges.Add(added);
  ranges.Finish();
  EXPECT_FALSE(ranges.HasAll());
}

TEST(Phases, HaveNoSequenceNumbersOfPyTorch) {
  analyze::StepCandidates ranges;
  const uint32_t forward = ranges.Label("aten::mm, seq = 12, op_id = 34"),
                 inner = ranges.Label("aten::mm, op_id = 35");
  ranges.Add(std::vector<importers::Range>{{.start_ns = 0, .end_ns = 100, .process = 1, .label = forward},
                                           {.start_ns = 200, .end_ns = 250, .process = 1, .label = inner}});
  ranges.Finish();
  Kernels phases;
  AddPhases(ranges, phases);
  ASSERT_EQ(phases.size(), 1u);
  EXPECT_EQ(phases.at("aten::mm").amount.count, 2);
  EXPECT_EQ(phases.at("aten::mm").amount.total_ns, 150);
}

}  // namespace
}  // namespace gpusonde::compare
