// SPDX-License-Identifier: Apache-2.0
#include "diagnose/usual_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "diagnose/cause.h"
#include "diagnose/diagnosis.h"
#include "diagnose/print.h"
#include "diagnose/testing/world.h"
#include "model/batch.h"

namespace gpusonde::diagnose {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::Ge;
using testing::HasSubstr;
using testing::Lt;
using testing::Not;

struct UsualStepTest : testing::Test {
  UsualStep Usual() const { return diagnosis.FoundSteps().front().usual; }

  Diagnosis diagnosis{{}};
  World world{diagnosis};
};

TEST_F(UsualStepTest, IsTheMeanOfStepsOutsideOfIncidents) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 40 * kMs}, 60);
  world.Run({}, 150);
  ASSERT_EQ(world.Finish().size(), 1u);
  const UsualStep usual = Usual();
  EXPECT_GT(usual.steps, 100);
  EXPECT_NEAR(usual.states[State::kCpu], 10e6, 0.2e6);
  EXPECT_NEAR(usual.states[State::kGpuRun], 20e6, 0.2e6);
  EXPECT_EQ(usual.states[State::kRunQueue], 0);
  EXPECT_TRUE(usual.disturbances.empty());
  const std::string text = FormatText(diagnosis);
  EXPECT_THAT(text, HasSubstr("\n  a step usually takes 30 ms: 20 ms GPU kernels, 10.0 ms CPU\n"));
  EXPECT_THAT(FormatJson(diagnosis), HasSubstr(R"("disturbances":[])"));
}

// A longer kind of steps has taken the place of another one.
TEST_F(UsualStepTest, IsOfTheNewestTenSecondsWhateverTheirType) {
  world.Run({}, 350);
  world.Run({.gpu_ns = 60 * kMs, .copy_ns = 10 * kMs}, 150);
  EXPECT_TRUE(world.Finish().empty());
  EXPECT_NEAR(Usual().states.total(), 80e6, 1e6);
  EXPECT_THAT(FormatText(diagnosis),
              ContainsRegex("\n  its steps are of 2 kinds: 350 of 30 ms \\(kernels and copies: 1\\), from "
                            "08:00:1[01] on 149 of 80 ms \\(2\\)\n"));
  EXPECT_THAT(FormatJson(diagnosis),
              ContainsRegex(R"("kinds":\[\{"steps":350,"mean_ns":29.*"mean_work":1,.*"steps":149)"));
}

TEST_F(UsualStepTest, NamesWhatDisturbsItAllTheTime) {
  world.Run({.behind_stranger_ns = 15 * kMs, .stopped_ns = 6 * kMs}, 150);
  EXPECT_TRUE(world.Finish().empty()) << "no steps are slower than others";
  const UsualStep usual = Usual();
  ASSERT_EQ(usual.disturbances.size(), 2u);
  EXPECT_EQ(usual.disturbances[0].state, State::kRunQueue);
  EXPECT_EQ(
      usual.disturbances[0].sentence,
      "CPU contention all the time: 29 % of each step; 15 ms of each step were taken by stress (process 99) "
      "in /batch.slice. Move the others to other CPUs (cpuset), or lower their CPU weight.");
  EXPECT_THAT(usual.disturbances[1].sentence,
              HasSubstr("Stopped all the time: 12 % of each step; stress (process 99) in /batch.slice lets "
                        "it continue. Find"));
  EXPECT_THAT(FormatText(diagnosis), HasSubstr("\n  CPU contention all the time: 29 % of each step;"));
  EXPECT_THAT(FormatJson(diagnosis), HasSubstr(R"({"state":"step.run_queue","sentence":"CPU contention)"));
}

TEST_F(UsualStepTest, SaysThatTheProgramsOwnPriorityIsLow) {
  const int64_t from_ns = world.now_ns();
  world.Run({.behind_stranger_ns = 15 * kMs}, 150);
  world.Sum("process.nice", from_ns, 20 * (world.now_ns() - from_ns), world.workload);
  EXPECT_TRUE(world.Finish().empty());
  ASSERT_EQ(Usual().disturbances.size(), 1u);
  EXPECT_THAT(Usual().disturbances[0].sentence,
              HasSubstr(" in /batch.slice; the program's own priority is low (SCHED_IDLE). Move"));
}

TEST(LastingDisturbances, EachDisturbedStateHasACauseOfItsOwn) {
  for (const State state : kDisturbedStates)
    EXPECT_EQ(std::ranges::count_if(AllCauses(),
                                    [&](const Cause* cause) {
                                      return cause->states.size() == 1 && cause->states.front() == state;
                                    }),
              1)
        << model::InfoOf(MetricOf(state)).name;
}

TEST_F(UsualStepTest, ARankThatComesLastFromTheFirstStepOnIsNamed) {
  const auto disturbances_with = [](int64_t rank_runs_ns) {
    Diagnosis of_its_own{{}};
    World here(of_its_own);
    here.AddRank();
    here.Run({.rank_runs_ns = rank_runs_ns}, 150);
    here.Finish();
    return of_its_own.FoundSteps().front().usual.disturbances;
  };
  EXPECT_TRUE(disturbances_with(5 * kMs).empty());
  const auto found = disturbances_with(30 * kMs);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(
      found[0].sentence,
      "Straggling rank all the time: 50 % of each step is a wait for train (process 13) in /train.slice, "
      "which comes last. Look into the rank that comes last.");
}

TEST_F(UsualStepTest, RanksOfOneJobDoNotDisturbEachOther) {
  for (const int64_t behind_stranger_ns : {0 * kMs, 15 * kMs}) {
    Diagnosis of_its_own{{}};
    World here(of_its_own);
    here.AddRank();
    here.Run({.behind_stranger_ns = behind_stranger_ns, .behind_rank_ns = 15 * kMs, .rank_runs_ns = 5 * kMs},
             150);
    here.Finish();
    const UsualStep usual = of_its_own.FoundSteps().front().usual;
    EXPECT_NEAR(usual.states[State::kRunQueue], 15e6 + static_cast<double>(behind_stranger_ns), 1e6);
    ASSERT_EQ(usual.disturbances.size(), behind_stranger_ns == 0 ? 0u : 1u);
    if (!usual.disturbances.empty()) {
      EXPECT_THAT(usual.disturbances[0].sentence,
                  HasSubstr("all the time: 23 % of each step; 15 ms of each step were "
                            "taken by stress (process 99) in /batch.slice. Move"));
    }
  }
}

TEST_F(UsualStepTest, NamesWhoElseUsesTheGpuAllTheTime) {
  for (int i = 0; i < 150; ++i) {
    world.Gauge("gpu.process.utilization", 40, world.stranger);
    world.Gauge("gpu.process.utilization", 90, world.workload);
    world.Run({});
  }
  EXPECT_TRUE(world.Finish().empty());
  const UsualStep usual = Usual();
  ASSERT_EQ(usual.disturbances.size(), 1u);
  EXPECT_THAT(usual.disturbances[0].sentence,
              HasSubstr("GPU neighbour all the time: stress (process 99) in /batch.slice uses the GPU"));
}

TEST_F(UsualStepTest, WhoUsesTheGpuNowAndThenDoesNotDoSoAllTheTime) {
  for (int i = 0; i < 300; ++i) {
    world.Gauge("gpu.process.utilization", i < 150 ? 0 : 80, world.stranger);
    world.Run({});
  }
  EXPECT_TRUE(world.Finish().empty());
  ASSERT_EQ(Usual().disturbances.size(), 1u);
  EXPECT_THAT(
      Usual().disturbances[0].sentence,
      HasSubstr("GPU neighbour a part of the time: stress (process 99) in /batch.slice uses the GPU"));
}

TEST_F(UsualStepTest, WhoUsedTheGpuUntilItEndedDoesNotDoSoAllTheTime) {
  for (int i = 0; i < 130; ++i) {
    world.Gauge("gpu.process.utilization", 80, world.stranger);
    world.Run({});
  }
  world.Run({}, 55);
  EXPECT_TRUE(world.Finish().empty());
  ASSERT_EQ(Usual().disturbances.size(), 1u);
  EXPECT_THAT(Usual().disturbances[0].sentence, HasSubstr("GPU neighbour a part of the time: stress"));
}

TEST_F(UsualStepTest, WhoUsesTheGpuOnlyInAnIncidentDoesNotDoSoAllTheTime) {
  const auto run = [&](int steps, double stranger, int64_t behind_stranger_ns) {
    for (int i = 0; i < steps; ++i) {
      world.Gauge("gpu.process.utilization", stranger, world.stranger);
      world.Run({.behind_stranger_ns = behind_stranger_ns});
    }
  };
  run(150, 0, 0);
  run(50, 95, 40 * kMs);
  run(110, 0, 0);
  EXPECT_EQ(world.Finish().size(), 1u);
  EXPECT_THAT(FormatText(diagnosis), Not(HasSubstr("GPU neighbour all the time")));
}

TEST_F(UsualStepTest, SaysThatTheGpuIsTooHotAllTheTimeButNotThatItRunsAtItsPowerLimit) {
  for (const double reasons : {4.0, 64.0}) {
    Diagnosis of_its_own{{}};
    World here(of_its_own);
    for (int i = 0; i < 150; ++i) {
      here.Gauge("gpu.throttle.reasons", reasons);
      here.Run({});
    }
    EXPECT_TRUE(here.Finish().empty());
    const UsualStep usual = of_its_own.FoundSteps().front().usual;
    ASSERT_EQ(usual.disturbances.size(), reasons == 64 ? 1u : 0u);
    if (!usual.disturbances.empty()) {
      EXPECT_THAT(usual.disturbances[0].sentence,
                  HasSubstr("heat or the power supply limited the clocks 100 %"));
    }
  }
}

TEST_F(UsualStepTest, ATenthIsLittle) {
  world.Run({.behind_stranger_ns = 3 * kMs}, 150);
  EXPECT_TRUE(world.Finish().empty());
  EXPECT_NEAR(Usual().states[State::kRunQueue], 3e6, 1e5);
  EXPECT_TRUE(Usual().disturbances.empty());
}

TEST_F(UsualStepTest, TooFewStepsSayNothing) {
  world.Run({}, 7);
  world.Finish();
  EXPECT_EQ(Usual().steps, 0);
  EXPECT_THAT(FormatText(diagnosis), Not(HasSubstr("usually")));
}

TEST_F(UsualStepTest, FewStepsAreSplitButAreNoLastingDisturbance) {
  world.Run({.behind_stranger_ns = 15 * kMs}, 18);
  world.Finish();
  EXPECT_THAT(Usual().steps, AllOf(Ge(8), Lt(20)));
  EXPECT_NEAR(Usual().states[State::kRunQueue], 15e6, 1e6);
  EXPECT_TRUE(Usual().disturbances.empty());
}

TEST_F(UsualStepTest, IsStoredAsRows) {
  world.Run({.behind_stranger_ns = 15 * kMs}, 150);
  world.Finish();
  const auto batches = diagnosis.DrainRows();
  const auto rows = std::ranges::find(batches, "usual_steps", &model::Batch::table);
  ASSERT_NE(rows, batches.end());
  EXPECT_EQ(rows->rows % (kStates + 1), 0u) << "each time those of all states, and the waits between steps";
}

}  // namespace
}  // namespace gpusonde::diagnose
