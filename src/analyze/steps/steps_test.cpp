// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/archive.h"
#include "analyze/steps/step_candidates.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {
namespace {

using importers::GpuWork;
using testing::ElementsAre;
using testing::SizeIs;

// Ranges of process 7, each `every` and `length` long.
void Repeat(StepCandidates& candidates, const std::string& name, int count, int64_t every, int64_t length,
            int64_t first = 0) {
  for (int i = 0; i < count; ++i) {
    const int64_t start_ns = first + i * every;
    const importers::Range range{.start_ns = start_ns,
                                 .end_ns = start_ns + length,
                                 .process = 7,
                                 .label = candidates.Label(name + std::to_string(i))};
    candidates.Add({&range, 1});
  }
}

TEST(StepCandidates, WhatRepeatsAndCoversTheTimeIsAStep) {
  StepCandidates candidates;
  Repeat(candidates, "warm-up", 2, 5000, 5000);  // twice only
  Repeat(candidates, "forward", 100, 100, 40);
  Repeat(candidates, "iteration ", 100, 100, 98);
  candidates.Finish();
  const Steps steps = candidates.StepsOf(7, "");
  EXPECT_EQ(steps.label, "iteration ");
  EXPECT_THAT(steps.ranges, SizeIs(100));
  EXPECT_EQ(candidates.StepsOf(8, "").label, "") << "another process";
}

TEST(StepCandidates, OfNestedRangesTheInnermostThatCoverTheTime) {
  StepCandidates candidates;
  Repeat(candidates, "epoch ", 4, 2500, 2500);
  Repeat(candidates, "step ", 100, 100, 95);
  Repeat(candidates, "optimizer ", 100, 100, 20);
  candidates.Finish();
  EXPECT_EQ(candidates.StepsOf(7, "").label, "step ");
  EXPECT_EQ(candidates.StepsOf(7, "opt").label, "optimizer ") << "as the user says";
  EXPECT_EQ(candidates.StepsOf(7, "none").label, "");
}

TEST(StepCandidates, PyTorchsStepsComeFirst) {
  StepCandidates candidates;
  Repeat(candidates, "ProfilerStep#", 2, 1000, 990);
  Repeat(candidates, "batch ", 200, 10, 10);
  candidates.Finish();
  EXPECT_EQ(candidates.StepsOf(7, "").label, "ProfilerStep#");
}

TEST(StepCandidates, RangesThatOverlapAreNoSteps) {
  StepCandidates candidates;
  Repeat(candidates, "request ", 50, 100, 250);
  candidates.Finish();
  EXPECT_EQ(candidates.StepsOf(7, "").label, "");
}

TEST(StepCandidates, RequestsWithPausesAreStepsButRareOnesAreNot) {
  StepCandidates candidates;
  Repeat(candidates, "request ", 50, 100, 60);
  candidates.Finish();
  EXPECT_EQ(candidates.StepsOf(7, "").label, "request ");
  StepCandidates rare;
  Repeat(rare, "checkpoint ", 50, 100, 40);
  Repeat(rare, "aten::mm, op_id = ", 50, 100, 90);
  rare.Finish();
  EXPECT_EQ(rare.StepsOf(7, "").label, "");
}

// Many more ranges than are kept, in any order and from any number of threads.
TEST(StepCandidates, TheLongestAreKeptWhateverTheOrder) {
  constexpr int kAll = 150'000;
  std::vector<int> order(kAll);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(11);
  const auto steps_of = [&](size_t threads) {
    std::ranges::shuffle(order, random);
    std::vector<StepCandidates> states(threads);
    for (size_t i = 0; i < order.size(); ++i) {
      StepCandidates& state = states[i % threads];
      const int64_t number = order[i];
      // Every hundredth is a step, the others are operators within it.
      const importers::Range range{.start_ns = number * 10,
                                   .end_ns = number * 10 + (number % 100 == 0 ? 990 : 5 + number % 3),
                                   .process = 7,
                                   .label = state.Label(number % 100 == 0 ? "step 1" : "aten::mm")};
      state.Add({&range, 1});
    }
    for (size_t i = 1; i < threads; ++i) states[0].Merge(states[i]);
    states[0].Finish();
    ArchiveWriter archive;
    const Steps steps = states[0].StepsOf(7, "");
    EXPECT_EQ(steps.label, "step ");
    return steps.ranges.size();
  };
  EXPECT_EQ(steps_of(1), 1500u);
  EXPECT_EQ(steps_of(3), 1500u);
}

// Without the shortest of them, each step before one that is missing would seem to last as long as both.
TEST(StepCandidates, RangesOfWhichSomeAreNotKeptAreNoSteps) {
  constexpr int64_t kMost = StepCandidates::kMaxRanges;
  const auto add = [](StepCandidates& candidates, int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const importers::Range range{.start_ns = i * 100,
                                   .end_ns = i * 100 + 90 + i % 10,
                                   .process = 7,
                                   .label = candidates.Label("decode " + std::to_string(i))};
      candidates.Add({&range, 1});
    }
  };
  StepCandidates all;
  add(all, 0, kMost);
  all.Finish();
  EXPECT_EQ(all.StepsOf(7, "").ranges.size(), static_cast<size_t>(kMost));
  EXPECT_EQ(all.StepsOf(7, "").left_out, 0);
  EXPECT_EQ(all.RangesOf(7).at("decode ").size(), static_cast<size_t>(kMost));
  StepCandidates some, others;
  add(some, 0, 2 * kMost);
  add(others, 2 * kMost, 3 * kMost);
  others.Label("another name");
  some.Merge(others);
  some.Finish();
  for (const std::string_view prefix : {"", "dec"}) {
    EXPECT_EQ(some.StepsOf(7, prefix).label, "");
    EXPECT_TRUE(some.StepsOf(7, prefix).ranges.empty());
    EXPECT_EQ(some.StepsOf(7, prefix).left_out, 2 * kMost);
  }
  EXPECT_TRUE(some.RangesOf(7).empty());
  Repeat(some, "epoch ", 3, 100 * kMost, 99 * kMost);
  EXPECT_EQ(some.StepsOf(7, "").label, "epoch ") << "all of which are kept";
  EXPECT_EQ(some.StepsOf(7, "").left_out, 0);
}

TEST(StepCandidates, SurviveAnArchive) {
  StepCandidates candidates;
  Repeat(candidates, "step ", 10, 100, 95);
  ArchiveWriter out;
  candidates.Transfer(out);
  const std::string bytes = out.Take();
  StepCandidates read;
  ArchiveReader in(bytes);
  read.Transfer(in);
  EXPECT_TRUE(in.ok());
  EXPECT_THAT(read.StepsOf(7, "").ranges, SizeIs(10));
}

// The sum of three such lengths overflows.
TEST(StepCandidates, RangesOfCenturiesThatOverlapAreNoSteps) {
  StepCandidates candidates;
  Repeat(candidates, "step ", 5, 1, 2 * (importers::kMaxTimeNs - 10), -importers::kMaxTimeNs);
  candidates.Finish();
  EXPECT_EQ(candidates.StepsOf(7, "").label, "");
  EXPECT_EQ(candidates.StepsOf(7, "step").label, "");
}

TEST(StepCandidates, AnArchiveWithTimesThatNoEventHasIsRefused) {
  constexpr int64_t kStart = 1'234'567, kLength = 7'654;
  StepCandidates candidates;
  Repeat(candidates, "step ", 1, 0, kLength, kStart);
  ArchiveWriter out;
  candidates.Transfer(out);
  const std::string whole = out.Take();
  const auto bytes_of = [](int64_t ns) { return std::string(reinterpret_cast<const char*>(&ns), sizeof ns); };
  const size_t at = whole.find(bytes_of(kStart + kLength));
  ASSERT_NE(at, std::string::npos);
  for (const int64_t end_ns : {importers::kMaxTimeNs, importers::kMaxTimeNs + 1, INT64_MAX}) {
    std::string bytes = whole;
    bytes.replace(at, sizeof end_ns, bytes_of(end_ns));
    StepCandidates read;
    ArchiveReader in(bytes);
    read.Transfer(in);
    EXPECT_EQ(in.ok(), end_ns == importers::kMaxTimeNs) << end_ns;
  }
}

// Ten steps of 1000 ns. Each launches at its start a gemm of 400 ns, a collective that overlaps its last 100
// ns and lasts 200, and a copy of 50 ns; it runs 100 ns later. Step 6 waits for 2000 ns before it launches,
// and its gemm takes 300 ns longer.
class StepTimesTest : public testing::Test {
 protected:
  StepTimesTest() {
    state_.Name("gemm");
    state_.Name("ncclDevKernel_AllReduce");
    int64_t begin_ns = 10'000;
    for (int64_t step = 0; step < 10; ++step) {
      const bool slow = step == 6;
      const int64_t launch_ns = begin_ns + (slow ? 2000 : 0);
      const int64_t end_ns = launch_ns + 1000 + (slow ? 300 : 0);
      ranges_.push_back({.start_ns = begin_ns,
                         .end_ns = end_ns,
                         .process = 0,
                         .label = state_.Label("ProfilerStep#" + std::to_string(step))});
      const int64_t gemm_ns = 400 + (slow ? 300 : 0);
      Launch(launch_ns, launch_ns + 100, gemm_ns, GpuWork::kKernel, 0);
      Launch(launch_ns + 1, launch_ns + gemm_ns, 200, GpuWork::kKernel, 1);
      Launch(launch_ns + 2, launch_ns + gemm_ns + 300, 50, GpuWork::kMemcpy, 0);
      begin_ns = end_ns;
    }
    state_.Gpu(events_);
    state_.Api(calls_);
    state_.Ranges(ranges_);
    EXPECT_TRUE(state_.Finish().has_value());
  }
  void Launch(int64_t call_ns, int64_t start_ns, int64_t duration_ns, GpuWork work, uint32_t name) {
    const auto number = static_cast<int64_t>(events_.size());
    events_.push_back({.start_ns = start_ns,
                       .end_ns = start_ns + duration_ns,
                       .correlation = number,
                       .stream = static_cast<uint32_t>(number % 3),
                       .name = name,
                       .work = work});
    calls_.push_back({.start_ns = call_ns, .end_ns = call_ns + 1, .correlation = number});
  }

  TraceState state_;
  std::vector<importers::GpuEvent> events_;
  std::vector<importers::ApiCall> calls_;
  std::vector<importers::Range> ranges_;
};

TEST_F(StepTimesTest, AStepsTimeIsDivided) {
  const auto results = FollowProcesses(state_, 1).value();
  ASSERT_THAT(results, SizeIs(1));
  const RankSteps& steps = results[0].steps;
  EXPECT_EQ(steps.label, "ProfilerStep#");
  ASSERT_THAT(steps.steps, SizeIs(10));
  for (size_t i = 0; i < 10; ++i) {
    SCOPED_TRACE(i);
    const StepTimes& step = steps.steps[i];
    EXPECT_EQ(step.start_ns, ranges_[i].start_ns);
    EXPECT_EQ(step.step_ns, i == 6 ? 3300 : 1000);
    EXPECT_EQ(step.kernels, 2);
    EXPECT_EQ(step.compute_ns, i == 6 ? 700 : 400);
    EXPECT_EQ(step.exposed_comm_ns, 100);
    EXPECT_EQ(step.other_ns, 50);
    // The last ends with its work; what the device waits for step 6 is idle time of step 5.
    const int64_t idle_ns = i == 9 ? 100 : i == 5 ? 2450 : 450;
    EXPECT_EQ(step.idle_ns(), idle_ns);
    const StepTimes& before = steps.steps[i == 0 ? 0 : i - 1];
    EXPECT_EQ(step.gpu_begin_ns, before.gpu_begin_ns + (i == 0 ? 0 : before.gpu_ns));
  }
}

TEST_F(StepTimesTest, SlowStepsNameWhatTookLonger) {
  const RankSteps steps = FollowProcesses(state_, 1).value()[0].steps;
  ASSERT_THAT(steps.slow, SizeIs(1));
  EXPECT_EQ(steps.slow[0].number, 6u);
  ASSERT_THAT(steps.slow[0].kernels, SizeIs(1)) << "the collective took as long as ever";
  EXPECT_EQ(steps.slow[0].kernels[0].name, 0u);
  EXPECT_EQ(steps.slow[0].kernels[0].excess_ns, 700 - 430);
}

TEST_F(StepTimesTest, WithoutLaunchesThereAreOnlyTheHostsTimes) {
  TraceState state;
  state.Name("gemm");
  state.Name("ncclDevKernel_AllReduce");
  const uint32_t label = state.Label("ProfilerStep#0");
  for (importers::Range& range : ranges_) range.label = label;
  state.Gpu(events_);
  state.Ranges(ranges_);
  ASSERT_TRUE(state.Finish().has_value());
  const RankSteps steps = FollowProcesses(state, 1).value()[0].steps;
  ASSERT_THAT(steps.steps, SizeIs(10));
  EXPECT_EQ(steps.steps[6].step_ns, 3300);
  EXPECT_EQ(steps.steps[6].gpu_ns, 0);
}

}  // namespace
}  // namespace gpusonde::analyze
