// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "diagnose/rank.h"
#include "diagnose/situation.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Explain, AnotherReasonForTheSameTimeIsNoSecondCause) {
  Situation situation{.onset_ns = kBegin, .slowdown = 2.3, .signals_known = true};
  situation.before[State::kCpu] = 10e6;
  situation.during[State::kCpu] = 23e6;
  const std::vector<Candidate> causes = Rank(situation);
  ASSERT_EQ(causes.size(), 2u);
  EXPECT_EQ(causes[0].cause->id, CauseId::kMoreCpuWork);
  EXPECT_EQ(causes[1].cause->id, CauseId::kSlowCpu);
  EXPECT_GT(causes[1].confidence, 0.5);
  EXPECT_THAT(Explain(situation, causes, kBegin).sentence, Not(HasSubstr("Also")));
}

TEST(Explain, AWaitForNobodyNamesAProcessOfTheProgramThatEnded) {
  Situation situation{.onset_ns = kBegin, .slowdown = 3, .signals_known = true};
  situation.before[State::kCpu] = situation.during[State::kCpu] = 10e6;
  situation.during[State::kWaiting] = 20e6;
  situation.helpers = {{.name = "logger (process 11)"}, {.name = "loader (process 12)", .ended = true}};
  EXPECT_THAT(Explain(situation, Rank(situation), kBegin).sentence,
              HasSubstr("in \"Waiting\"; loader (process 12) of the program had ended. The flame graph"));
}

// As by a debugger, at a breakpoint.
TEST(Explain, AHangOfAProgramThatWasStoppedNamesWhoLetItContinue) {
  Situation situation{.onset_ns = kBegin, .slowdown = 800, .idle_ns = 8e9, .signals_known = true};
  situation.before[State::kCpu] = situation.during[State::kCpu] = 10e6;
  situation.during[State::kStopped] = 8e9;
  situation.stopped_during = {{{.name = "gdb", .pid = 12}, 8e9}};
  const std::vector<Candidate> causes = Rank(situation);
  ASSERT_FALSE(causes.empty());
  EXPECT_EQ(causes[0].cause->id, CauseId::kHang);
  EXPECT_THAT(Explain(situation, causes, kBegin).sentence,
              HasSubstr("a step was stopped for 8 s, by a signal, a tracer or a frozen cgroup; gdb (process "
                        "12) let it continue"));
}

TEST(Explain, KernelsThatHaveGrownAreNamedWhereNothingExplainsTheirTime) {
  Situation situation{.onset_ns = kBegin, .slowdown = 2, .signals_known = true};
  situation.before[State::kGpuRun] = 20e6;
  situation.during[State::kGpuRun] = 40e6;
  situation.gpu_time = {{"_ZN2at6native7softmaxEv", {.before = 3e6, .during = 8e6}},
                        {"gemm", {.before = 3.1e6, .during = 18e6}},
                        {"relu", {.before = 1e6, .during = 1.2e6}}};
  EXPECT_THAT(
      Explain(situation, {}, kBegin).sentence,
      HasSubstr(
          "in \"GPU kernels\": gemm takes 18 ms of a step (3.1 ms before), "
          "at::native::softmax() takes 8.0 ms of a step (3.0 ms before). The flame graph of its GPU time"));
  situation.gpu_time.clear();
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence, HasSubstr("compared with a time before"));
}

// Waits for a CPU and a disk at once, about as long as each other.
TEST(KeepFirst, ANamedCauseStaysFirstUntilAnotherIsClearlyLikelier) {
  const auto ranked = [](double run_queue_ns) {
    Situation situation{.onset_ns = kBegin, .slowdown = 3, .signals_known = true};
    situation.before[State::kCpu] = situation.during[State::kCpu] = 10e6;
    situation.during[State::kRunQueue] = run_queue_ns;
    situation.during[State::kBlockedIo] = 20e6 - run_queue_ns;
    std::vector<Candidate> causes = Rank(situation);
    const auto first = causes.front().cause->id;
    KeepFirst(CauseId::kCpuContention, causes);
    return std::pair(first, causes.front().cause->id);
  };
  EXPECT_EQ(ranked(12e6), std::pair(CauseId::kCpuContention, CauseId::kCpuContention));
  EXPECT_EQ(ranked(9.2e6), std::pair(CauseId::kBlockIo, CauseId::kCpuContention));
  EXPECT_EQ(ranked(3e6), std::pair(CauseId::kBlockIo, CauseId::kBlockIo));
}

TEST(Explain, WhereTheGpuRunsNothingThatIsQueuedSaysWhereToLook) {
  Situation situation{.onset_ns = kBegin, .slowdown = 3, .signals_known = true};
  situation.before[State::kGpuRun] = situation.during[State::kGpuRun] = 10e6;
  situation.during[State::kGpuQueue] = 20e6;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("look for other programs on it (gpusonde top)"));
}

TEST(Explain, AWaitForAPacketOfAnUnknownSenderSaysWhereToLook) {
  Situation situation{.onset_ns = kBegin, .slowdown = 3, .signals_known = true};
  situation.before[State::kCpu] = situation.during[State::kCpu] = 10e6;
  situation.during[State::kNetwork] = 20e6;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("in \"Network\". The other end of a connection"));
}

TEST(Explain, ASleepThatTheProgramAskedForIsSaidToBeOne) {
  Situation situation{.onset_ns = kBegin, .slowdown = 3, .signals_known = true};
  situation.before[State::kCpu] = situation.during[State::kCpu] = 10e6;
  situation.during[State::kSleeping] = 20e6;
  EXPECT_THAT(
      Explain(situation, {}, kBegin).sentence,
      HasSubstr("The program itself slept (nanosleep), as for a retry or to limit its rate, for 100 % of "
                "the 20 ms that each step lost"));
  situation.helpers = {{.name = "loader (process 12)", .ended = true}};
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("loader (process 12) of the program had ended"));
}

// One thread sleeps with a lock that the others need, which run when they have had it.
TEST(Explain, WhatSeveralThreadsOfTheProgramDidIsSaidTogether) {
  Situation situation{.onset_ns = kBegin, .slowdown = 4, .signals_known = true};
  situation.before[State::kGpuRun] = situation.during[State::kGpuRun] = 5e6;
  situation.during[State::kSleeping] = situation.own_threads_slept_during = 5e6;
  situation.during[State::kWaiting] = situation.own_threads_idle_during = 4e6;
  situation.during[State::kLoader] = situation.own_threads_during = 4.2e6;
  situation.during[State::kRunQueue] = 2.8e6;
  EXPECT_THAT(
      Explain(situation, {}, kBegin).sentence,
      HasSubstr("Waiting for other threads of the program took most of the 16 ms that each step lost: "
                "they slept for 31 % of it, ran for 26 %, did nothing for 25 %; no known cause explains "
                "that. One of them may hold a lock"));
  situation.during[State::kRunQueue] = 20e6;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence, Not(HasSubstr("other threads"))) << "it is little";
}

// Kernels take half as long again, while contention takes more than that.
TEST(Explain, AShareThatDidNotGrowIsToldInTime) {
  Situation situation{.onset_ns = kBegin, .slowdown = 1.6, .signals_known = true};
  situation.before[State::kGpuRun] = 8e6;
  situation.during[State::kGpuRun] = 12e6;
  situation.before[State::kRunQueue] = 30e6;
  situation.during[State::kRunQueue] = 53e6;
  situation.signals[model::Metric::kGpuClockSm] = {.before = 1865, .during = 1089};
  const std::string sentence = Explain(situation, Rank(situation), kBegin).sentence;
  EXPECT_THAT(sentence, HasSubstr("the step waited for the GPU's kernels for 12 ms (8.0 ms before)"));
  EXPECT_THAT(sentence, HasSubstr("the step waited for a CPU 82 % of the time (79 % before)"));
}

TEST(Explain, SharesAreOfTheLostTimeAndTinyOrHugeRatiosAreNotPrinted) {
  Situation situation{.onset_ns = kBegin, .slowdown = 1.002, .signals_known = true};
  situation.before[State::kCpu] = 30e6;
  situation.during[State::kUnexplained] = 32e6;  // the excess is 2 ms
  const std::string sentence = Explain(situation, {}, kBegin).sentence;
  EXPECT_THAT(sentence, HasSubstr("no signal says where 100 % of the 32 ms that each step lost went"));
  EXPECT_THAT(sentence, Not(HasSubstr("×")));

  situation.unfinished = true;
  situation.unfinished_ns = 4e9;
  situation.steps = 1;
  situation.during[State::kUnexplained] = 4e9;
  situation.slowdown = 133;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("A step has taken 4.0 s (usually 30 ms) from"));
  situation.unfinished = false;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence, HasSubstr("A step took 4.0 s (usually 30 ms) from"));
  situation.steps = 2;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("Steps took 4.0 s on average (usually 30 ms) from"));
  situation.idle_ns = 7.9e9;  // one of them waited for nearly all of that time
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence, HasSubstr("A step took 8.0 s (usually 30 ms) from"));
  situation.idle_ns = 0;
  situation.unfinished = true;
  situation.unfinished_ns = 8e9;
  EXPECT_THAT(Explain(situation, {}, kBegin).sentence,
              HasSubstr("A step has taken 8.0 s (usually 30 ms) from"));
}

// A program ended, or waits, in the last of many slow steps.
TEST(Explain, AnUnfinishedStepAfterManySlowOnesIsNotWhatAnIncidentIsAbout) {
  Situation situation{.onset_ns = kBegin, .slowdown = 5.8, .steps = 300, .signals_known = true};
  situation.before[State::kGpuRun] = situation.during[State::kGpuRun] = 17e6;
  situation.during[State::kStopped] = 82e6;
  situation.unfinished = true;
  situation.unfinished_ns = 2.6e9;  // of 30 s
  EXPECT_THAT(Explain(situation, Rank(situation), kBegin).sentence, HasSubstr("Steps slowed 5.8× from"));
  situation.steps = 50;
  EXPECT_THAT(Explain(situation, Rank(situation), kBegin).sentence,
              HasSubstr("A step has taken 2.6 s (usually 17 ms) from"));
}

}  // namespace
}  // namespace gpusonde::diagnose
