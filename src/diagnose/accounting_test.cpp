// SPDX-License-Identifier: Apache-2.0
#include "diagnose/accounting.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kStep = 100 * kMs;
constexpr int32_t kTid = 11;

// Steps of 100 ms; signals in buckets of 100 ms.
struct AccountingTest : testing::Test {
  AccountingTest() {
    AddProcess(program, kTid, 1);
    AddProcess(loader, 12, kTid);
    accounting.CountThread(kTid, kBegin - 1);
    accounting.UpdateProgram(launch_threads);
  }
  void AddProcess(const Id128& id, int32_t pid, int32_t parent) {
    actors.Ingest(model::Process{.process = id, .pid = pid, .parent_pid = parent, .started_ns = kBegin});
  }
  static StepSpan Span(int number) {
    return {.type = {1, 1}, .start_ns = kBegin + number * kStep, .end_ns = kBegin + (number + 1) * kStep};
  }
  // Of the step with this number.
  void AddSignal(int number, const std::string& metric, int64_t ns, const Id128& process, int32_t tid,
                 std::optional<Id128> other = std::nullopt) {
    host.Ingest(model::Signal{.start_ns = Span(number).start_ns,
                              .bucket_ns = kStep,
                              .metric = metric,
                              .process = process,
                              .tid = tid,
                              .other = other,
                              .values = {ns}});
  }
  void Running(int number, int64_t ns) { AddSignal(number, "thread.running", ns, program, kTid); }
  double UsualCpu() const {
    PathAccount usual;
    baseline.AddUsual({1, 1}, 1, usual);
    return usual.states[State::kCpu];
  }

  const Id128 program{7, 1}, loader{7, 2}, rank{7, 3};
  HostTimeline host;
  Actors actors;
  CleanBaseline baseline;
  LaunchThreads launch_threads;
  Accounting accounting{program, host, actors, baseline};
};

TEST_F(AccountingTest, SignalsThatArriveLateAreInTheCompleteAccount) {
  Running(0, 10 * kMs);
  EXPECT_EQ(accounting.Add(Span(0), false).path.states[State::kCpu], 10 * kMs);
  accounting.MarkClean();
  Running(0, 30 * kMs);
  accounting.CompleteUntil(Span(0).end_ns - 1);
  EXPECT_TRUE(baseline.empty()) << "more signals may arrive";
  accounting.CompleteUntil(Span(0).end_ns);
  EXPECT_EQ(UsualCpu(), 40 * kMs);
}

TEST_F(AccountingTest, SlowStepsAreSummedWithinATime) {
  for (int i = 0; i < 6; ++i) {
    Running(i, int64_t{i + 1} * 10 * kMs);
    accounting.Add(Span(i), i > 0);
  }
  const StepSum sum = accounting.SlowWithin(Span(2).start_ns, Span(4).start_ns);
  EXPECT_EQ(sum.types.at({1, 1}), 2);
  EXPECT_EQ(sum.path.states[State::kCpu], (30 + 40) * kMs);
  EXPECT_EQ(accounting.StartOfLastSlow(2, Span(4).start_ns), Span(2).start_ns);
  EXPECT_EQ(accounting.StartOfLastSlow(3, Span(4).start_ns), Span(1).start_ns);
  EXPECT_EQ(accounting.StartOfLastSlow(4, Span(4).start_ns), 0) << "the first step is not slow";
}

// More steps than are remembered one by one end between the incident's end and its detection.
TEST_F(AccountingTest, ShortStepsAfterTheEndAreNotInTheSum) {
  const auto add = [&](int number, int64_t length_ns) {
    const int64_t start_ns = kBegin + number * length_ns;
    accounting.Add({.type = {1, 1}, .start_ns = start_ns, .end_ns = start_ns + length_ns}, true);
  };
  accounting.BeginSlow(kBegin);
  for (int i = 0; i < 2500; ++i) add(i, 2 * kMs);
  const int64_t end_ns = kBegin + 2 * kNanosPerSecond;
  EXPECT_NEAR(static_cast<double>(accounting.SlowUntil(end_ns).types.at({1, 1})), 1000, 50);
  EXPECT_NEAR(accounting.SlowUntil(end_ns).path.states.total(), 2.0 * kNanosPerSecond, 100.0 * kMs);
  EXPECT_NEAR(
      static_cast<double>(accounting.SlowWithin(end_ns, kBegin + 3 * kNanosPerSecond).types.at({1, 1})), 500,
      50);
  accounting.BeginSlow(end_ns);
  EXPECT_NEAR(static_cast<double>(accounting.SlowUntil(INT64_MAX).types.at({1, 1})), 1500, 50);
}

TEST_F(AccountingTest, AChangeIsWhereOneStateGivesWayToAnother) {
  for (int i = 0; i < 10; ++i) {
    Running(i, (i < 6 ? 60 : 20) * kMs);
    AddSignal(i, "thread.run_queue", (i < 6 ? 10 : 50) * kMs, program, kTid);
    accounting.Add(Span(i), true);
  }
  const TimeRange all{Span(0).start_ns, Span(9).end_ns};
  const std::array cpu{State::kCpu}, queue{State::kRunQueue}, disk{State::kBlockedIo};
  EXPECT_EQ(accounting.ChangeBetween(cpu, queue, all), Span(6).start_ns);
  EXPECT_EQ(accounting.ChangeBetween(queue, cpu, all), std::nullopt) << "it was the other way round";
  EXPECT_EQ(accounting.ChangeBetween(cpu, cpu, all), std::nullopt);
  EXPECT_EQ(accounting.ChangeBetween(cpu, disk, all), std::nullopt);
  EXPECT_EQ(accounting.ChangeBetween(cpu, queue, {Span(6).start_ns, Span(9).end_ns}), std::nullopt);
}

// A server's threads take turns; the usual one waits for a request meanwhile.
TEST_F(AccountingTest, AStepIsThatOfTheThreadThatLaunchedIt) {
  const auto add_step = [&](int number, int32_t tid, int32_t other) {
    for (int64_t call = 0; call < 10; ++call) accounting.CountThread(tid, Span(number).start_ns + call * kMs);
    AddSignal(number, "thread.running", 60 * kMs, program, tid);
    AddSignal(number, "thread.sleeping", kStep, program, other);
    return accounting.Add(Span(number), false).path.states[State::kCpu];
  };
  EXPECT_EQ(add_step(0, kTid, kTid + 1), 60 * kMs);
  EXPECT_EQ(add_step(1, kTid, kTid + 1), 60 * kMs);
  EXPECT_EQ(add_step(2, kTid + 1, kTid), 60 * kMs);
  EXPECT_EQ(accounting.usual_launch_thread(), kTid);
}

TEST_F(AccountingTest, OnlyCleanStepsJoinTheBaseline) {
  for (int i = 0; i < 4; ++i) {
    Running(i, int64_t{i + 1} * 10 * kMs);
    accounting.Add(Span(i), false);
    if (i == 1) accounting.MarkClean();
  }
  accounting.CompleteUntil(INT64_MAX);
  EXPECT_EQ(UsualCpu(), 20 * kMs);
}

TEST_F(AccountingTest, SlowStepsAreSummedFromTheOnsetWithTheirNewestAccounts) {
  for (int i = 0; i < 6; ++i) {
    Running(i, 10 * kMs);
    accounting.Add(Span(i), false);
    accounting.MarkClean();
  }
  accounting.BeginSlow(Span(4).start_ns);
  Running(6, 20 * kMs);
  accounting.Add(Span(6), true);
  EXPECT_EQ(accounting.SlowUntil(INT64_MAX).path.states[State::kCpu], 40 * kMs);
  EXPECT_EQ(accounting.SlowUntil(INT64_MAX).types.at({1, 1}), 3);
  Running(6, 5 * kMs);
  accounting.CompleteUntil(INT64_MAX);
  const StepSum sum = accounting.SlowUntil(INT64_MAX);
  EXPECT_EQ(sum.path.states[State::kCpu], 45 * kMs);
  EXPECT_NEAR(sum.path.states.total(), 3 * kStep, 1);
  EXPECT_EQ(UsualCpu(), 10 * kMs) << "slow steps aren't clean";
}

// As after a restart of the agent in the middle of an incident.
TEST_F(AccountingTest, SlowStepsFromBeforeSignalsAreObservedAgainAreNotInTheSum) {
  for (int i = 0; i < 6; ++i) {
    if (i < 2 || i > 3) Running(i, 80 * kMs);
    accounting.Add(Span(i), true);
  }
  accounting.CompleteUntil(INT64_MAX);
  const StepSum sum = accounting.SlowUntil(INT64_MAX);
  EXPECT_EQ(sum.types.at({1, 1}), 4);
  EXPECT_EQ(sum.path.states[State::kCpu], 320.0 * kMs);
  EXPECT_NEAR(sum.path.states[State::kUnexplained], 80.0 * kMs, 1);
}

TEST_F(AccountingTest, TheOnlySlowStepStaysInTheSumWithoutSignals) {
  Running(0, 80 * kMs);
  accounting.Add(Span(0), false);
  accounting.Add(Span(1), true);
  accounting.CompleteUntil(INT64_MAX);
  EXPECT_EQ(accounting.SlowUntil(INT64_MAX).types.at({1, 1}), 1);
}

TEST_F(AccountingTest, StepsThatBeganLaterAreNotPartOfTheSum) {
  accounting.BeginSlow(kBegin);
  for (int i = 0; i < 5; ++i) {
    Running(i, 10 * kMs);
    accounting.Add(Span(i), true);
  }
  const StepSum sum = accounting.SlowUntil(Span(3).start_ns);
  EXPECT_EQ(sum.types.at({1, 1}), 3);
  EXPECT_EQ(sum.path.states[State::kCpu], 30 * kMs);
}

TEST_F(AccountingTest, StepsWhoseSignalsAreStillToComeAreNotKnown) {
  accounting.BeginSlow(kBegin);
  EXPECT_EQ(accounting.RefreshKnown(), 0);
  for (int i = 0; i < 5; ++i) accounting.Add(Span(i), true);
  EXPECT_EQ(accounting.RefreshKnown(), 0);
  for (int i = 0; i < 4; ++i) Running(i, 10 * kMs);  // the last of these may grow
  const int64_t known_ns = accounting.RefreshKnown();
  EXPECT_EQ(known_ns, Span(2).end_ns);
  const StepSum sum = accounting.SlowUntil(known_ns);
  EXPECT_EQ(sum.types.at({1, 1}), 3);
  EXPECT_EQ(sum.path.states[State::kCpu], 30 * kMs);
}

// Until then it was not known that it is a loader.
TEST_F(AccountingTest, EarlierAccountsAreCompletedWithWhatANewLoaderDid) {
  for (int i = 0; i < 3; ++i) {
    AddSignal(i, "thread.running", 40 * kMs, loader, 12);
    accounting.Add(Span(i), false);
    accounting.MarkClean();
  }
  accounting.CompleteUntil(Span(0).end_ns);
  const auto usual_loaders = [&] {
    PathAccount usual;
    baseline.AddUsual({1, 1}, 1, usual);
    return usual.loaders[State::kLoader];
  };
  EXPECT_EQ(usual_loaders(), 0);
  accounting.BeginSlow(Span(2).start_ns);
  AddSignal(3, "thread.waiting", 80 * kMs, program, kTid, loader);
  AddSignal(3, "thread.running", 90 * kMs, loader, 12);
  accounting.Add(Span(3), true);
  EXPECT_TRUE(accounting.program().loaders.contains(loader));
  EXPECT_EQ(usual_loaders(), 40 * kMs);
  EXPECT_EQ(accounting.SlowUntil(INT64_MAX).path.loaders[State::kLoader], (40 + 90) * kMs);
}

TEST_F(AccountingTest, AProgramWithGpuWorkThatIsWaitedForIsARankAndNoLoader) {
  AddProcess(rank, 30, 1);
  launch_threads[rank] = 30;
  accounting.UpdateProgram(launch_threads);
  EXPECT_EQ(accounting.usual_launch_thread(), kTid);
  AddSignal(0, "thread.network", 60 * kMs, program, kTid, rank);
  AddSignal(0, "thread.running", 60 * kMs, rank, 30);
  const PathAccount path = accounting.Add(Span(0), false).path;
  EXPECT_TRUE(accounting.program().ranks.contains(rank));
  EXPECT_TRUE(accounting.program().loaders.empty());
  EXPECT_NEAR(path.states[State::kPeer], 60 * kMs, 1);
}

TEST_F(AccountingTest, TheWaitForARequestIsNotPartOfTheStep) {
  const auto add = [&](int number) {
    Running(number, 40 * kMs);
    AddSignal(number, "thread.sleeping", 60 * kMs, program, kTid);
    return accounting.Add(Span(number), false);
  };
  int number = 0;
  do add(number);
  while (!accounting.MarkClean() && ++number < 50);
  ASSERT_TRUE(accounting.waits_by_habit());
  accounting.Clear();
  const AccountedStep served = add(++number);
  EXPECT_EQ(served.step.start_ns, Span(number).start_ns + 60 * kMs);
  EXPECT_EQ(served.step.end_ns, Span(number).end_ns);
  EXPECT_NEAR(served.path.states.total(), 40 * kMs, 1);
}

// A server that sleeps between its requests, and then waits for a thread that sleeps with a lock.
TEST_F(AccountingTest, AWaitForAThreadThatSleepsIsPartOfTheStepOfAServerThatNeverWaitedForOne) {
  int number = 0;
  do {
    Running(number, 40 * kMs);
    AddSignal(number, "thread.sleeping", 60 * kMs, program, kTid);
    accounting.Add(Span(number), false);
  } while (!accounting.MarkClean() && ++number < 50);
  ASSERT_TRUE(accounting.waits_by_habit());
  Running(++number, 40 * kMs);
  AddSignal(number, "thread.sleeping", 20 * kMs, program, kTid);
  AddSignal(number, "thread.waiting", 40 * kMs, program, kTid, program);
  AddSignal(number, "thread.sleeping", kStep / 2, program, kTid + 1);
  AddSignal(number, "thread.running", kStep / 2, program, kTid + 1);
  const AccountedStep served = accounting.Add(Span(number), false);
  EXPECT_EQ(served.step.start_ns, Span(number).start_ns + 20 * kMs);
  EXPECT_NEAR(served.path.states[State::kSleeping], 20 * kMs, 1);
  EXPECT_NEAR(served.path.slept.at(program), 20 * kMs, 1);
  EXPECT_NEAR(served.path.states.total(), 80 * kMs, 1);
}

// A server whose client is a process that it started; or a program with a loader that paces itself.
TEST_F(AccountingTest, SleepsOfAnotherProcessAreRequestsOnlyIfTheyAreIrregular) {
  for (const bool regular : {true, false}) {
    Accounting fresh(program, host, actors, baseline);
    fresh.CountThread(kTid, kBegin - 1);
    fresh.UpdateProgram(launch_threads);
    for (int i = 0; i < 50; ++i) {
      const int number = (regular ? 0 : 50) + i;
      const int64_t asleep_ns = regular ? 60 * kMs : (10 + i * 37 % 80) * kMs;
      Running(number, kStep - asleep_ns);
      AddSignal(number, "thread.waiting", asleep_ns, program, kTid, loader);
      AddSignal(number, "thread.sleeping", kStep - kMs, loader, 12);
      AddSignal(number, "thread.running", kMs, loader, 12);
      fresh.Add(Span(number), false);
      fresh.MarkClean();
    }
    EXPECT_EQ(fresh.waits_by_habit(), !regular);
  }
}

TEST_F(AccountingTest, GpuWorkIsKeptUntilNoAccountNeedsIt) {
  const std::array times{WorkTime{.end_ns = kBegin + 90 * kMs, .length_ns = 90 * kMs}};
  accounting.Ingest(Work::Kind::kKernel, times);
  accounting.Ingest(Work::Kind::kSync, times);
  accounting.Add(Span(0), false);
  accounting.ForgetGpuWorkBefore(Span(5).start_ns);
  accounting.BeginSlow(kBegin);
  accounting.CompleteUntil(INT64_MAX);
  EXPECT_NEAR(accounting.SlowUntil(INT64_MAX).path.states[State::kGpuRun], 90 * kMs, 1);
  accounting.ForgetGpuWorkBefore(Span(5).start_ns);
  EXPECT_EQ(accounting.AccountUnfinished(kBegin, kBegin + kStep).states[State::kGpuRun], 0);
}

}  // namespace
}  // namespace gpusonde::diagnose
