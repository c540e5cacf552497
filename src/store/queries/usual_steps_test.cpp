// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usual_steps.h"

#include <gtest/gtest.h>

#include "model/tables/processes.h"
#include "model/tables/sources.h"
#include "model/tables/steps.h"
#include "model/tables/usual_steps.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using UsualStepsTest = MemoryStoreTest;

TEST_F(UsualStepsTest, AreThoseOfEachProcessTheLongestPartsFirst) {
  const Id128 one{1, 1}, other{1, 2}, unusual{1, 3};
  Add(model::kSources, {{.source = {9, 9}, .started_ns = 0, .ended_ns = 100}});
  Add(model::kProcesses,
      {{.process = one, .pid = 7, .name = "rank0"}, {.process = other, .pid = 8, .name = "rank1"}});
  for (int64_t i = 0; i < 3; ++i)
    Add(model::kSteps, {{.process = one, .ordinal = i, .start_ns = i, .end_ns = i + 1},
                        {.process = other, .ordinal = i, .start_ns = i, .end_ns = i + 1}});
  Add(model::kSteps, {{.process = unusual, .start_ns = 1, .end_ns = 2}});
  Add(model::kUsualSteps,
      {{.process = one, .state = "step.cpu", .time_ns = 10, .steps = 2},
       {.process = one, .state = "step.gpu_run", .time_ns = 20, .steps = 2},
       {.process = one, .state = "step.stopped", .time_ns = 0, .steps = 2},
       {.process = one, .state = "step.between", .time_ns = 70, .steps = 2},
       {.process = other, .state = "step.cpu", .time_ns = 90, .steps = 2, .sentence = "Slow."}});
  Add(model::kUsualSteps, {{.process = one, .state = "step.cpu", .time_ns = 30, .steps = 2}});  // replaces
  const auto read = ReadUsualSteps(*store_, {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->count, 7);
  ASSERT_EQ(read->programs.size(), 2u);
  EXPECT_EQ(read->programs.at(0).process, other);
  EXPECT_EQ(read->programs.at(0).parts.at(0).sentence, "Slow.");
  const UsualSteps& first = read->programs.at(1);
  EXPECT_EQ(first.name, "rank0");
  EXPECT_EQ(first.pid, 7);
  EXPECT_EQ(first.steps, 3);
  EXPECT_EQ(first.time_ns, 50);
  EXPECT_EQ(first.between_ns, 70) << "no part of the steps";
  ASSERT_EQ(first.parts.size(), 2u);
  EXPECT_EQ(first.parts[0].state, "step.cpu");
  EXPECT_EQ(first.parts[1].time_ns, 20);
}

TEST_F(UsualStepsTest, LoopsOfAProcessAreApart) {
  const Id128 process{1, 1};
  Add(model::kSources, {{.source = {9, 9}, .started_ns = 0, .ended_ns = 100}});
  Add(model::kSteps, {{.process = process, .start_ns = 1, .end_ns = 2},
                      {.process = process, .tid = 8, .start_ns = 1, .end_ns = 2},
                      {.process = process, .tid = 8, .ordinal = 1, .start_ns = 2, .end_ns = 3}});
  for (const int32_t tid : {0, 8, 9})
    Add(model::kUsualSteps, {{.process = process, .tid = tid, .state = "step.cpu", .time_ns = 10.0 + tid}});
  const auto read = ReadUsualSteps(*store_, {});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->count, 3);
  ASSERT_EQ(read->programs.size(), 2u) << "the third has no steps in this time";
  EXPECT_EQ(read->programs[0].tid, 8);
  EXPECT_EQ(read->programs[0].steps, 2);
  EXPECT_EQ(read->programs[0].time_ns, 18);
  EXPECT_EQ(read->programs[1].tid, 0);
}

TEST_F(UsualStepsTest, NameTheCommonKindsOfStepsInTheSelectedTime) {
  const Id128 process{1, 1};
  Add(model::kSources, {{.source = {9, 9}, .started_ns = 0, .ended_ns = 10'000}});
  for (int64_t i = 0; i < 40; ++i)
    Add(model::kSteps, {{.process = process,
                         .type = {0, i < 30 ? 1u : 2u},
                         .ordinal = i,
                         .start_ns = 100 * i,
                         .end_ns = 100 * i + (i < 30 ? 20 : 50)}});
  Add(model::kSteps, {{.process = process, .type = {0, 3}, .start_ns = 100, .end_ns = 900}});  // rare
  Add(model::kUsualSteps, {{.process = process, .state = "step.cpu", .time_ns = 10}});
  const auto all = ReadUsualSteps(*store_, {});
  ASSERT_TRUE(all.has_value()) << all.error().message;
  ASSERT_EQ(all->programs.size(), 1u);
  const std::vector<model::StepKind>& kinds = all->programs[0].kinds;
  ASSERT_EQ(kinds.size(), 2u);
  EXPECT_EQ(kinds[0].steps, 30);
  EXPECT_EQ(kinds[0].mean_ns(), 20);
  EXPECT_EQ(kinds[0].last_ns, 2'920);
  EXPECT_EQ(kinds[1].steps, 10);
  EXPECT_EQ(kinds[1].mean_ns(), 50);
  EXPECT_EQ(kinds[1].first_ns, 3'000);
  const auto first = ReadUsualSteps(*store_, {.from_ns = 0, .to_ns = 2'500});
  ASSERT_TRUE(first.has_value()) << first.error().message;
  EXPECT_TRUE(first->programs.at(0).kinds.empty()) << "one is no choice";
}

TEST_F(UsualStepsTest, OfProcessesWithStepsInTheSelectedTime) {
  const Id128 early{1, 1}, late{1, 2};
  Add(model::kSources, {{.source = {9, 9}, .started_ns = 0, .ended_ns = 100}});
  Add(model::kSteps,
      {{.process = early, .start_ns = 1, .end_ns = 2}, {.process = late, .start_ns = 50, .end_ns = 60}});
  Add(model::kUsualSteps, {{.process = early, .state = "step.cpu", .time_ns = 10},
                           {.process = late, .state = "step.cpu", .time_ns = 10}});
  const auto read = ReadUsualSteps(*store_, {.from_ns = 40, .to_ns = 90});
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->count, 1);
  ASSERT_EQ(read->programs.size(), 1u);
  EXPECT_EQ(read->programs.front().process, late);
  EXPECT_EQ(read->programs.front().name, "") << "nothing is known of it";
}

}  // namespace
}  // namespace gpusonde::store
