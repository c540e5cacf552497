// SPDX-License-Identifier: Apache-2.0
#include "diagnose/step_finder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <ranges>
#include <set>
#include <string>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "base/time_range.h"

namespace gpusonde::diagnose {
namespace {

using Kind = Work::Kind;

struct StepFinderTest : testing::Test {
  StepFinder finder;
  int64_t now_ns = kNanosPerSecond;

  void Add(Kind kind, const std::string& name, int64_t length_ns = kMs, uint64_t shape = 1) {
    finder.Ingest({.kind = kind, .name = name, .shape = shape, .time_ns = now_ns, .length_ns = length_ns});
    now_ns += length_ns;
  }
};

TEST_F(StepFinderTest, WorkThatOccursOncePerLayerDoesNotMarkSteps) {
  std::vector<StepSpan> steps;
  for (int step = 0; step < 100; ++step) {
    for (int layer = 0; layer < 12; ++layer) {
      Add(Kind::kKernel, "gemm");
      Add(Kind::kKernel, "softmax");
    }
    for (int i = 0; i < 12; ++i) Add(Kind::kKernel, "update" + std::to_string(i));
    const auto found = finder.Advance(now_ns);
    steps.insert(steps.end(), found.begin(), found.end());
  }
  ASSERT_TRUE(finder.anchor().has_value());
  EXPECT_TRUE(finder.anchor()->starts_with("kernel update")) << *finder.anchor();
  ASSERT_GT(steps.size(), 50u);
  std::set<Id128> types;
  for (const StepSpan& step : steps) {
    EXPECT_EQ(step.end_ns - step.start_ns, 36 * kMs);
    types.insert(step.type);
  }
  EXPECT_EQ(types.size(), 1u);
}

// A loop of 0.2 ms.
TEST_F(StepFinderTest, ALoopThatIsTooShortForAStepIsFollowedInGroupsOfAFixedNumber) {
  std::vector<StepSpan> steps;
  for (int round = 0; round < 60'000; ++round) {
    Add(Kind::kKernel, "gemm", 120'000);
    Add(Kind::kSync, "stream", 80'000);
    if (round % 100 != 99) continue;
    const auto found = finder.Advance(now_ns);
    steps.insert(steps.end(), found.begin(), found.end());
  }
  EXPECT_EQ(finder.anchor(), "sync stream, 25 to a step");
  ASSERT_GE(steps.size(), 2'398u);
  for (const StepSpan& step : steps | std::views::drop(1)) {
    ASSERT_EQ(step.end_ns - step.start_ns, 5 * kMs);
    ASSERT_EQ(step.work, 25);
    ASSERT_EQ(step.type, steps[1].type);
  }
}

TEST_F(StepFinderTest, RangesArePreferredToSyncsAndLongRangesToShortOnes) {
  for (int step = 0; step < 100; ++step) {
    finder.Ingest({.kind = Kind::kRange, .name = "step", .time_ns = now_ns, .length_ns = 30 * kMs});
    finder.Ingest({.kind = Kind::kRange, .name = "forward", .time_ns = now_ns + 1, .length_ns = 10 * kMs});
    for (int i = 0; i < 30; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "range step");
}

TEST_F(StepFinderTest, ARangeAroundManyStepsIsNotAStep) {
  for (int epoch = 0; epoch < 20; ++epoch) {
    finder.Ingest({.kind = Kind::kRange, .name = "epoch", .time_ns = now_ns, .length_ns = 400 * kMs});
    for (int step = 0; step < 10; ++step) {
      for (int i = 0; i < 39; ++i) Add(Kind::kKernel, "gemm");
      Add(Kind::kSync, "context");
    }
  }
  finder.Advance(now_ns);
  EXPECT_EQ(finder.anchor(), "sync context");
}

TEST_F(StepFinderTest, WorkWithoutAPeriodHasNoSteps) {
  uint32_t random = 1;
  for (int i = 0; i < 5000; ++i) {
    random = random * 1664525 + 1013904223;
    // Bursts of irregular size.
    Add(Kind::kKernel, "k" + std::to_string((random >> 20) % 50 * ((random >> 12) % 50)));
  }
  EXPECT_TRUE(finder.Advance(now_ns).empty());
  EXPECT_EQ(finder.anchor(), std::nullopt);
}

TEST_F(StepFinderTest, GeneratedNamesDoNotHideTheSteps) {
  for (int i = 0; i < 30'000; ++i) Add(Kind::kKernel, "made up " + std::to_string(i), kMs / 100);
  finder.Advance(now_ns);
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "made up " + std::to_string(30'000 + 20 * step + i));
    Add(Kind::kSync, "context");
    finder.Advance(now_ns);
  }
  finder.Gap(now_ns, false);
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "made up " + std::to_string(40'000 + 20 * step + i));
    Add(Kind::kSync, "context");
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "sync (others)");
}

TEST_F(StepFinderTest, ShapesThatNeverRecurMakeNoTypes) {
  std::set<Id128> types;
  for (uint64_t step = 0; step < 300; ++step) {
    Add(Kind::kCopy, "htod", kMs, 1000 + step);
    for (int i = 0; i < 19; ++i) Add(Kind::kKernel, "gemm");
    for (const StepSpan& found : finder.Advance(now_ns))
      if (step > 200) types.insert(found.type);
  }
  EXPECT_EQ(types.size(), 1u);
}

TEST_F(StepFinderTest, OddStepsOfHoursDoNotMergeTheTypesThatRecur) {
  std::map<Id128, int> steps;
  for (uint64_t step = 0; step < 20'000; ++step) {
    Add(Kind::kCopy, "htod", kMs, 1000 + (step % 50 == 49 ? step : 0));
    for (int i = 0; i < 19; ++i) Add(Kind::kKernel, "gemm");
    for (const StepSpan& found : finder.Advance(now_ns)) ++steps[found.type];
  }
  EXPECT_GT(std::ranges::max(steps | std::views::values), 19'500);
}

TEST_F(StepFinderTest, AnAnchorThatStopsOccurringIsReplaced) {
  for (int step = 0; step < 100; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "warm");
    Add(Kind::kSync, "context");
  }
  finder.Advance(now_ns);
  ASSERT_EQ(finder.anchor(), "sync context");
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kKernel, "reduce");
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "kernel reduce");
}

TEST_F(StepFinderTest, StepsBeforeTheAnchorWasChosenAreFoundToo) {
  std::vector<StepSpan> steps;
  for (int step = 0; step < 1500; ++step) {
    for (int i = 0; i < 4; ++i) Add(Kind::kKernel, "gemm", kMs / 4);
    Add(Kind::kSync, "context");
    for (const StepSpan& found : finder.Advance(now_ns)) steps.push_back(found);
  }
  for (const StepSpan& found : finder.Finish()) steps.push_back(found);
  ASSERT_EQ(steps.size(), 1500u);
  std::set<Id128> types;
  for (size_t i = 0; i < steps.size(); ++i) {
    types.insert(steps[i].type);
    if (i > 0) {
      EXPECT_EQ(steps[i].start_ns, steps[i - 1].end_ns);
    }
  }
  EXPECT_EQ(types.size(), 1u);
}

TEST_F(StepFinderTest, AProgramShorterThanASecondGetsItsStepsWhenItEnds) {
  for (int step = 0; step < 38; ++step) {
    for (int i = 0; i < 10; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
  }
  EXPECT_TRUE(finder.Advance(now_ns).empty());
  EXPECT_EQ(finder.Finish().size(), 38u);
}

// A program that launches much is observed for two seconds at a time.
TEST_F(StepFinderTest, StepsOfWhichAFewAreObservedAtATimeAreFound) {
  std::vector<StepSpan> steps;
  std::vector<TimeRange> observed;
  int observed_whole = 0;
  const auto keep = [&](const std::vector<StepSpan>& found) {
    steps.insert(steps.end(), found.begin(), found.end());
  };
  for (int window = 0; window < 10; ++window) {
    keep(finder.Gap(now_ns, true));
    observed.push_back({now_ns, now_ns + 2 * kNanosPerSecond});
    int syncs = 0;
    for (int i = 37 * (window + 1); now_ns < observed.back().to_ns; ++i) {
      if (i % 121 != 120) {
        Add(Kind::kKernel, "gemm", 3 * kMs);
        continue;
      }
      Add(Kind::kSync, "stream", 200 * kMs);
      ++syncs;
    }
    observed_whole += syncs - 1;
    keep(finder.Gap(now_ns, false));
    now_ns += 5 * kNanosPerSecond;
  }
  EXPECT_EQ(finder.anchor(), "sync stream");
  const auto whole = [](const StepSpan& step) { return !step.cut; };
  EXPECT_EQ(std::ranges::count_if(steps, whole), observed_whole);
  for (const StepSpan& step : steps | std::views::filter(whole)) {
    EXPECT_EQ(step.end_ns - step.start_ns, 560 * kMs);
    EXPECT_TRUE(std::ranges::any_of(observed, [&](const TimeRange& window) {
      return step.start_ns >= window.from_ns && step.end_ns <= window.to_ns + 200 * kMs;
    }));
  }
}

TEST_F(StepFinderTest, RoundsOfSeveralSyncsAreFoundInWindowsOfThem) {
  for (int window = 0; window < 6; ++window) {
    finder.Gap(now_ns, true);
    for (int sync = 0; sync < 40; ++sync) {
      for (int i = 0; i < 5; ++i) Add(Kind::kKernel, sync % 4 == 3 && i == 4 ? "update" : "gemm", 3 * kMs);
      Add(Kind::kSync, "stream", 50 * kMs);
    }
    finder.Gap(now_ns, false);
    now_ns += kNanosPerSecond;
  }
  EXPECT_EQ(finder.anchor(), "kernel update");
}

// All have the same name, however irregular the rest of the work is.
TEST_F(StepFinderTest, RangesThatAreNamedAsStepsWin) {
  std::vector<StepSpan> steps;
  for (int step = 0; step < 100; ++step) {
    const int64_t start_ns = now_ns;
    for (int i = 0; i < 20 + step % 7 * 10; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    finder.Ingest({.kind = Kind::kRange,
                   .name = "ProfilerStep#" + std::to_string(step),
                   .time_ns = now_ns,
                   .length_ns = now_ns - start_ns});
    now_ns += kMs;
    for (const StepSpan& found : finder.Advance(now_ns)) steps.push_back(found);
  }
  EXPECT_EQ(finder.anchor(), "range ProfilerStep");
  EXPECT_EQ(steps.size(), 100u);
  EXPECT_EQ(steps.front().start_ns, kNanosPerSecond);
}

TEST_F(StepFinderTest, RangesThatAreNamedAsStepsWinEvenIfTheyAppearLate) {
  const auto step = [&](bool named) {
    const int64_t start_ns = now_ns;
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    if (named)
      finder.Ingest(
          {.kind = Kind::kRange, .name = "train_step", .time_ns = now_ns, .length_ns = now_ns - start_ns});
    now_ns += kMs;
    finder.Advance(now_ns);
  };
  for (int i = 0; i < 100; ++i) step(false);
  ASSERT_EQ(finder.anchor(), "sync context");
  for (int i = 0; i < 3; ++i) step(true);
  EXPECT_EQ(finder.anchor(), "range train_step");
}

TEST_F(StepFinderTest, WarmUpAndEvaluationsDoNotHideTheSteps) {
  int64_t found = 0;
  for (int step = 0; step < 300; ++step) {
    for (int i = 0; i < (step < 5 ? 300 : 20); ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    if (step % 10 == 9)
      for (int i = 0; i < 60; ++i) Add(Kind::kKernel, "evaluate");
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync context");
  EXPECT_NEAR(static_cast<double>(found), 300, 1);
}

TEST_F(StepFinderTest, MicroBatchesThatSynchronizeAreOneStep) {
  int64_t found = 0;
  for (int step = 0; step < 200; ++step) {
    for (int batch = 0; batch < 3; ++batch) {
      Add(Kind::kCopy, "htod");
      for (int i = 0; i < 8; ++i) Add(Kind::kKernel, "gemm");
      Add(Kind::kSync, "context");
    }
    for (int i = 0; i < 6; ++i) Add(Kind::kKernel, "gradient");
    Add(Kind::kKernel, "update");
    Add(Kind::kSync, "context");
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "kernel update");
  EXPECT_NEAR(static_cast<double>(found), 200, 1);
}

// In the first seconds there are too few rounds to tell that they take turns.
TEST_F(StepFinderTest, LongMicroBatchesAreOneStep) {
  int64_t found = 0;
  for (int step = 0; step < 34; ++step) {
    for (int batch = 0; batch < 4; ++batch) {
      Add(Kind::kCopy, "htod");
      Add(Kind::kKernel, "embed");
      for (int i = 0; i < 28; ++i) Add(Kind::kKernel, "gemm", 10 * kMs);
    }
    Add(Kind::kKernel, "update", 20 * kMs);
    Add(Kind::kSync, "context");
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync context");
  EXPECT_NEAR(static_cast<double>(found), 34, 1);
}

// Inference: no backward pass makes the layers irregular, and the first seconds have too few syncs.
TEST_F(StepFinderTest, EqualLayersAreOneStepUntilTheSyncAfterTheirInput) {
  int64_t found = 0;
  for (int step = 0; step < 80; ++step) {
    for (int input = 0; input < 2; ++input) Add(Kind::kCopy, "htod");
    Add(Kind::kKernel, "embed");
    for (int layer = 0; layer < 40; ++layer) {
      Add(Kind::kKernel, "attention", 5 * kMs);
      Add(Kind::kKernel, "mlp", 5 * kMs);
    }
    Add(Kind::kCopy, "dtoh");
    Add(Kind::kSync, "stream");
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync stream");
  EXPECT_NEAR(static_cast<double>(found), 80, 1);
}

// A loop over equal kernels, then work on the CPU.
TEST_F(StepFinderTest, EqualKernelsAreOneStepUntilTheSyncThatTheGpuIsIdleAfter) {
  int64_t found = 0;
  for (int step = 0; step < 20; ++step) {
    for (int i = 0; i < 40; ++i) Add(Kind::kKernel, "simulate", 9 * kMs);
    Add(Kind::kSync, "context");
    now_ns += 400 * kMs;
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync context");
  EXPECT_NEAR(static_cast<double>(found), 20, 1);
}

// A loss that is read after every 20 steps.
TEST_F(StepFinderTest, ASyncAfterManyCopiesOfInputIsNoStep) {
  int64_t found = 0;
  for (int step = 0; step < 400; ++step) {
    Add(Kind::kCopy, "htod");
    for (int i = 0; i < 9; ++i) Add(Kind::kKernel, "gemm", 3 * kMs);
    Add(Kind::kKernel, "update");
    if (step % 20 == 19) Add(Kind::kSync, "context");
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "kernel update");
  EXPECT_NEAR(static_cast<double>(found), 400, 1);
}

TEST_F(StepFinderTest, SyncsAfterCopiesAloneEndNoStep) {
  int64_t found = 0;
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    if (step % 5 == 4) {
      for (int i = 0; i < 10; ++i) Add(Kind::kCopy, "dtoh");
      Add(Kind::kSync, "context");
    }
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync context");
  EXPECT_NEAR(static_cast<double>(found), 200, 1);
}

TEST_F(StepFinderTest, AnEvaluationAfterTenStepsIsNoRound) {
  int64_t found = 0;
  for (int step = 0; step < 200; ++step) {
    for (int i = 0; i < 20; ++i) Add(Kind::kKernel, "gemm");
    Add(Kind::kSync, "context");
    if (step % 10 == 9) {
      for (int i = 0; i < 12; ++i) Add(Kind::kKernel, "evaluate");
      Add(Kind::kSync, "context");
    }
    found += std::ssize(finder.Advance(now_ns));
  }
  EXPECT_EQ(finder.anchor(), "sync context");
  EXPECT_NEAR(static_cast<double>(found), 220, 1);
}

// As a server of prompts of several lengths does, whose iterations are all alike.
TEST_F(StepFinderTest, RequestsOfVaryingSizeEndWithTheirSyncs) {
  uint32_t random = 1;
  for (int request = 0; request < 200; ++request) {
    random = random * 1664525 + 1013904223;
    for (uint32_t i = 0; i < 4u << (random >> 20) % 3; ++i) {
      Add(Kind::kKernel, "gemm", kMs / 5);
      Add(Kind::kKernel, "softmax", kMs / 25);
    }
    Add(Kind::kSync, "context", kMs / 100);
    now_ns += 2 * kMs + (random >> 12) % 10 * kMs;
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "sync context");
}

// In the first second there are too few syncs to tell that the GPU is idle after them.
TEST_F(StepFinderTest, FewRequestsASecondEndWithTheirSyncs) {
  uint32_t random = 1;
  for (int request = 0; request < 40; ++request) {
    random = random * 1664525 + 1013904223;
    for (int i = 0; i < 17; ++i) {
      Add(Kind::kKernel, "gemm", kMs / 2);
      Add(Kind::kKernel, "softmax", kMs / 2);
    }
    Add(Kind::kSync, "stream", kMs / 100);
    now_ns += 40 * kMs + (random >> 12) % 80 * kMs;
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "sync stream");
}

TEST_F(StepFinderTest, IrregularSyncsOfABusyGpuEndNoStep) {
  uint32_t random = 1;
  for (int step = 0; step < 800; ++step) {
    random = random * 1664525 + 1013904223;
    for (int layer = 0; layer < 4; ++layer) Add(Kind::kKernel, "gemm", kMs);
    Add(Kind::kKernel, "update", kMs);
    now_ns += kMs;  // for the next batch
    if ((random >> 20) % 16 == 0) Add(Kind::kSync, "context", kMs / 100);
    finder.Advance(now_ns);
  }
  EXPECT_EQ(finder.anchor(), "kernel update");
}

}  // namespace
}  // namespace gpusonde::diagnose
