// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "diagnose/explain.h"
#include "diagnose/print.h"
#include "diagnose/testing/world.h"
#include "model/batch_rows.h"

namespace gpusonde::diagnose {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

struct DiagnosisTest : testing::Test {
  Diagnosis diagnosis{{}};
  World world{diagnosis};

  // Runs clean steps, slow ones, and clean ones again.
  std::vector<Report> Disturb(const World::Step& slow, int slow_steps = 60) {
    world.Run({}, 150);
    onset_ns = world.now_ns();
    world.Run(slow, slow_steps);
    over_ns = world.now_ns();
    world.Run({}, 200);
    return world.Finish();
  }

  // The injected library sleeps; then a second session begins.
  void LoseObservationFor(int64_t ns) {
    diagnosis.Ingest(model::GpuSession{.process = world.workload,
                                       .session = 1,
                                       .start_ns = kBegin,
                                       .end_ns = world.now_ns(),
                                       .end_reason = "governor"});
    world.Wait(ns);
    diagnosis.Ingest(model::GpuSession{.process = world.workload, .session = 2, .start_ns = world.now_ns()});
  }

  // Returns `during` of a step state, ms.
  static double During(const Report& report, const std::string& signal) {
    for (const model::Evidence& evidence : report.evidence)
      if (evidence.signal == signal) return evidence.during.value_or(0) / 1e6;
    return 0;
  }

  int64_t onset_ns = 0, over_ns = 0;
};

TEST_F(DiagnosisTest, CleanStepsAreNoIncident) {
  world.Run({}, 2000);
  EXPECT_TRUE(world.Finish().empty());
  const auto found = diagnosis.FoundSteps();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.front().anchor, "sync stream");
  EXPECT_GT(found.front().steps, 1900);
}

TEST_F(DiagnosisTest, RunQueueDelayBehindAnotherProgramIsCpuContentionAndNamesIt) {
  const auto reports = Disturb({.behind_stranger_ns = 40 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  const model::Incident& incident = reports[0].incident;
  EXPECT_EQ(incident.cause, "cpu_contention");
  EXPECT_GT(incident.confidence, 0.9);
  EXPECT_THAT(incident.sentence,
              HasSubstr("40 ms of each step were taken by stress (process 99) in /batch.slice"));
  EXPECT_NEAR(static_cast<double>(incident.start_ns - onset_ns) / kMs, 0, 75);
  ASSERT_TRUE(incident.end_ns.has_value());
  EXPECT_NEAR(static_cast<double>(*incident.end_ns - over_ns) / kMs, 0, 500);
  EXPECT_NEAR(incident.slowdown, 70.0 / 30, 0.25);
  EXPECT_NEAR(During(reports[0], "step.run_queue"), 40, 6);
}

TEST_F(DiagnosisTest, StepsThatMayBeTheRecoveryAreNotCountedAsSlow) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 40 * kMs}, 60);
  world.Run({}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_FALSE(reports[0].incident.end_ns.has_value());
  EXPECT_NEAR(reports[0].incident.slowdown, 70.0 / 30, 0.25);
  EXPECT_NEAR(During(reports[0], "step.run_queue"), 40, 6);
}

TEST_F(DiagnosisTest, TheStatesOfAStepSumToItsLength) {
  const auto reports = Disturb({.behind_stranger_ns = 13 * kMs,
                                .loader_runs_ns = 17 * kMs,
                                .blocked_io_ns = 7 * kMs,
                                .interrupted_ns = 2 * kMs,
                                .gpu_idle_ns = 3 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  double sum = 0;
  for (const model::Evidence& evidence : reports[0].evidence)
    if (evidence.signal.starts_with("step.")) sum += *evidence.during / 1e6;
  const double clean = During(reports[0], "step.gpu_run") + 10;
  EXPECT_NEAR(sum, clean + 13 + 17 + 7 + 3, 4);
  EXPECT_NEAR(During(reports[0], "step.run_queue"), 13, 2);
  EXPECT_NEAR(During(reports[0], "step.loader"), 17, 2);
  EXPECT_NEAR(During(reports[0], "step.blocked_io"), 7, 1);
  EXPECT_NEAR(During(reports[0], "step.interrupted"), 2, 0.5);
  EXPECT_NEAR(During(reports[0], "step.gpu_queue"), 3, 1);
  EXPECT_NEAR(During(reports[0], "step.unexplained"), 0, 1);
}

TEST_F(DiagnosisTest, RunQueueDelayBehindItsOwnProcessesIsOwnContention) {
  const auto reports = Disturb({.behind_loader_ns = 40 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention_own");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("the program's own loader"));
}

// All its threads are pinned to one CPU: each waits for the others, but none does more than before.
TEST_F(DiagnosisTest, AProgramThatHasFewerCpusDoesNotSlowItself) {
  world.Run({.loader_hidden_ns = 20 * kMs}, 150);
  world.Run({.behind_loader_ns = 20 * kMs, .one_cpu = true, .loader_hidden_ns = 20 * kMs}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain) << FormatText(diagnosis);
}

TEST_F(DiagnosisTest, ALoaderThatRunsLongerIsSlowDataLoadingAndNotContention) {
  const auto reports = Disturb({.loader_runs_ns = 40 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "slow_data_loading");
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("the program's own processes (loader), which were running"));
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("not CPU contention"));
}

// The loader runs for 18 of 30 ms while the step hardly waits for it, or not at all. Then another program
// uses its CPU for 40 ms, and the step waits for what GPU work doesn't hide of the 58 ms.
TEST_F(DiagnosisTest, ALoaderDelayedByAnotherProgramIsCpuContention) {
  for (const int64_t waited_ns : {kMs, int64_t{0}}) {
    Diagnosis of_this{{}};
    World here{of_this};
    here.Run({.loader_runs_ns = waited_ns, .loader_hidden_ns = 18 * kMs - waited_ns}, 150);
    here.Run({.loader_runs_ns = 18 * kMs, .loader_behind_stranger_ns = 40 * kMs}, 60);
    const auto reports = here.Finish();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].incident.cause, "cpu_contention") << FormatText(of_this);
    const auto sure = [](const Candidate& candidate) { return candidate.confidence >= 0.5; };
    EXPECT_EQ(std::ranges::count_if(reports[0].causes, sure), 1) << FormatText(of_this);
  }
}

TEST_F(DiagnosisTest, AStepThatWaitedSecondsForAnUnknownProcessWasAHang) {
  world.Run({}, 150);
  world.Wait(9 * kNanosPerSecond);
  world.Run({}, 200);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "hang") << FormatText(diagnosis);
}

TEST_F(DiagnosisTest, ThrottledTimeIsBlamedOnTheQuotaAlone) {
  world.Run({}, 150);
  for (int i = 0; i < 60; ++i) {
    const int64_t from_ns = world.now_ns();
    world.Run({.behind_stranger_ns = 20 * kMs, .behind_nobody_ns = 30 * kMs});
    world.Sum("cgroup.throttled", from_ns, 50 * kMs, world.workload);
  }
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "cpu_quota");
  EXPECT_THAT(reports[0].incident.sentence, Not(HasSubstr("stress")));
}

TEST_F(DiagnosisTest, WaitingForDisksNamesTheProcessThatUsesThem) {
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.blocked_io_ns = 50 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 500'000'000, world.stranger);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "block_io");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("stress (process 99) in /batch.slice read or wrote"));
}

TEST_F(DiagnosisTest, InterruptsAndReclaimAreSubtractedFromCpuTime) {
  EXPECT_EQ(Disturb({.cpu_ns = 50 * kMs, .interrupted_ns = 40 * kMs})[0].incident.cause,
            "interrupt_pressure");
  Diagnosis other{{}};
  World second(other);
  second.Run({}, 150);
  second.Run({.cpu_ns = 50 * kMs, .reclaim_ns = 40 * kMs}, 60);
  EXPECT_EQ(second.Finish()[0].incident.cause, "memory_pressure");
}

TEST_F(DiagnosisTest, RefaultsUnderMemoryPressureAreNotBlockIoContention) {
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.cpu_ns = 30 * kMs, .blocked_io_ns = 15 * kMs, .reclaim_ns = 12 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 500'000'000, world.workload);
  world.Sum("host.pressure.memory", from_ns, (world.now_ns() - from_ns) / 4, std::nullopt);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "memory_pressure") << FormatText(diagnosis);
  EXPECT_THAT(reports[0].incident.sentence, Not(HasSubstr("Also"))) << FormatText(diagnosis);
}

TEST_F(DiagnosisTest, InterruptsAlsoExplainTheCpuTimeBetweenThem) {
  const auto reports = Disturb({.cpu_ns = 46 * kMs, .interrupted_ns = 18 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "interrupt_pressure") << FormatText(diagnosis);
}

TEST_F(DiagnosisTest, SlowKernelsAreClockThrottlingOnlyIfTheClocksFell) {
  for (const bool fell : {true, false}) {
    Diagnosis other{{}};
    World here(other);
    here.Gauge("gpu.clock.sm", 1980);
    here.Run({}, 150);
    here.Gauge("gpu.clock.sm", fell ? 990 : 1980);
    here.Run({.gpu_ns = 40 * kMs}, 60);
    const auto reports = here.Finish();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].incident.cause, fell ? "gpu_clocks" : kAbstain) << FormatText(other);
  }
}

TEST_F(DiagnosisTest, AWarmingGpuRaisesAWarningWhoseLeadTimeIsMeasured) {
  world.Gauge("gpu.clock.sm", 1980);
  for (int second = 0; second < 80; ++second) {
    world.Gauge("gpu.temperature.slowdown", 87);
    const int risen = second / 2;  // whole degrees
    world.Gauge("gpu.temperature", 47 + risen);
    world.Run({}, 33);
  }
  ASSERT_EQ(diagnosis.Warnings().size(), 1u);
  EXPECT_FALSE(diagnosis.Warnings()[0].incident.has_value());
  world.Gauge("gpu.clock.sm", 990);
  world.Run({.gpu_ns = 40 * kMs}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  const model::Warning warning = diagnosis.Warnings()[0];
  EXPECT_EQ(warning.incident, reports[0].incident.incident);
  EXPECT_EQ(warning.lead_ns, reports[0].incident.start_ns - warning.start_ns);
  EXPECT_GT(*warning.lead_ns, 10 * kNanosPerSecond);
  EXPECT_THAT(FormatText(diagnosis), HasSubstr("s before steps slowed"));
  std::vector<model::Warning> rows;
  for (const model::Batch& batch : diagnosis.DrainRows())
    if (batch.table == model::kWarnings.name()) rows = model::RowsOf(model::kWarnings, batch);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_FALSE(rows[0].lead_ns.has_value());
  EXPECT_EQ(rows[1].lead_ns, warning.lead_ns);
}

TEST_F(DiagnosisTest, ClocksThatFellBecauseTheGpuWasIdleAreNoCause) {
  world.Gauge("gpu.clock.sm", 1980);
  world.Run({}, 150);
  world.Gauge("gpu.clock.sm", 580);
  world.Run({.behind_stranger_ns = 30 * kMs, .gpu_idle_ns = 10 * kMs}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_THAT(reports[0].incident.sentence, Not(HasSubstr("clock")));
}

TEST_F(DiagnosisTest, SlowCopiesArePciePressureOnlyIfTheLinkSaysSo) {
  for (const bool narrow : {true, false}) {
    Diagnosis other{{}};
    World here(other);
    here.Gauge("gpu.pcie.width", 16);
    here.Run({.copy_ns = 10 * kMs}, 150);
    here.Gauge("gpu.pcie.width", narrow ? 4 : 16);
    here.Run({.copy_ns = 40 * kMs}, 60);
    const auto reports = here.Finish();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].incident.cause, narrow ? "pcie_pressure" : kAbstain) << FormatText(other);
  }
}

// The driver reports an error; the GPU goes on for a step, and then stalls once.
TEST_F(DiagnosisTest, OneStallIsAFaultIfTheDriverReportsAnErrorOfTheGpu) {
  const auto stall_after = [this](std::optional<int> xid) {
    world.Run({}, 150);
    if (xid.has_value()) world.Gauge("gpu.xid", *xid);
    world.Run({}, 1);
    onset_ns = world.now_ns();
    world.Run({.gpu_ns = 150 * kMs});
    world.Run({}, 5);
    return diagnosis.Reports();
  };
  EXPECT_TRUE(stall_after({}).empty());
  const auto reports = stall_after(63);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_TRUE(reports[0].is_notable);
  EXPECT_EQ(reports[0].incident.cause, "gpu_fault");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("XID 63"));
  EXPECT_EQ(reports[0].incident.start_ns, onset_ns);
}

TEST_F(DiagnosisTest, StolenCpuTimeIsBlamedOnTheHypervisor) {
  for (const bool stolen : {true, false}) {
    Diagnosis other{{}};
    World here(other);
    const auto run = [&](const World::Step& step, double share) {
      for (int i = 0; i < 30; ++i) {
        const int64_t from_ns = here.now_ns();
        here.Run(step, 5);
        here.Sum("host.steal", from_ns,
                 static_cast<int64_t>(share * static_cast<double>(here.now_ns() - from_ns)), std::nullopt);
      }
    };
    run({}, 0);
    run({.cpu_ns = 40 * kMs}, stolen ? 0.5 : 0);
    const auto reports = here.Finish();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports[0].incident.cause, stolen ? "host_steal" : "more_cpu_work") << FormatText(other);
  }
}

TEST_F(DiagnosisTest, AnotherProcessOnTheGpuIsANeighbour) {
  world.Run({}, 150);
  for (int i = 0; i < 60; ++i) {
    world.Run({.gpu_idle_ns = 20 * kMs});
    if (i % 20 == 0) world.Gauge("gpu.process.utilization", 50, world.stranger);
  }
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "gpu_neighbour");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("stress"));
}

TEST_F(DiagnosisTest, AbstainsWhenMostOfTheExcessIsUnexplained) {
  const auto reports = Disturb({.behind_stranger_ns = 15 * kMs, .lost_ns = 30 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain);
}

TEST_F(DiagnosisTest, AWaitForAProcessOutsideIsNoCauseButNamesIt) {
  const auto reports = Disturb({.outside_ns = 30 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain);
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("Waiting for stress (process 99) in /batch.slice took 100 % of the 30 ms that each "
                        "step lost; no known "
                        "cause explains that. Look at what that process does (gpusonde record --pid 99)"));
}

TEST_F(DiagnosisTest, ASleepOfAProcessThatIsWaitedForIsNoCauseButNamesIt) {
  world.Run({.loader_runs_ns = kMs}, 150);
  world.Run({.loader_runs_ns = kMs, .loader_sleeps_ns = 30 * kMs}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain);
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("Waiting for loader (process 12) in /train.slice, which slept, took "));
}

TEST_F(DiagnosisTest, ASleepOfAnotherThreadThatIsWaitedForIsNotSaidToBeAnotherProcess) {
  const auto reports = Disturb({.own_thread_sleeps_ns = 30 * kMs});
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain);
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("Waiting for other threads of the program, which did nothing, took "));
  EXPECT_THAT(reports[0].incident.sentence, Not(HasSubstr("--pid")));
}

TEST_F(DiagnosisTest, TwoCausesAreNamedTheLargerOneFirst) {
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.behind_stranger_ns = 30 * kMs, .blocked_io_ns = 25 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 500'000'000, world.stranger);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
  ASSERT_GE(reports[0].causes.size(), 2u);
  EXPECT_EQ(reports[0].causes[1].cause->name, "block_io");
  EXPECT_GE(reports[0].causes[1].confidence, 0.5);
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("Also Block-I/O contention"));
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("lower their CPU weight. Limit the other users of the disk"));
}

TEST_F(DiagnosisTest, ABusyProgramThatDelaysNoStepIsNotACause) {
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.loader_runs_ns = 40 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 5'000'000'000, world.stranger);
  world.Sum("host.pressure.cpu", from_ns, world.now_ns() - from_ns, std::nullopt);
  EXPECT_EQ(world.Finish()[0].incident.cause, "slow_data_loading");
}

TEST_F(DiagnosisTest, AStepThatNeverEndsIsAHangBeforeItEnds) {
  world.Run({}, 150);
  world.Wait(10 * kNanosPerSecond);
  const auto reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "hang");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("A step has taken"));
  EXPECT_EQ(reports[0].incident.end_ns, std::nullopt);
}

// Requests arrive at random: 0 to 60 ms after the last answer.
TEST_F(DiagnosisTest, AServersWaitsForRequestsAreNotPartOfItsSteps) {
  const auto serve = [&](World::Step step, int requests) {
    for (int i = 0; i < requests; ++i) {
      step.pause_ns = i * i * 7919 % 61 * kMs;
      world.Run(step, 1);
    }
  };
  serve({}, 300);
  onset_ns = world.now_ns();
  serve({.behind_stranger_ns = 20 * kMs}, 60);
  over_ns = world.now_ns();
  serve({}, 200);
  world.Wait(30 * kNanosPerSecond);  // no requests: not a hang
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  const model::Incident& incident = reports[0].incident;
  EXPECT_EQ(incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_NEAR(incident.slowdown, 50.0 / 30, 0.1);
  EXPECT_LT(During(reports[0], "step.sleeping"), 1);
  EXPECT_NEAR(static_cast<double>(incident.start_ns - onset_ns) / kMs, 0, 200);
  EXPECT_NEAR(static_cast<double>(*incident.end_ns - over_ns) / kMs, 0, 500);
  EXPECT_THAT(
      FormatText(diagnosis),
      ContainsRegex("its waits between steps, as a server's waits for requests, are not part of them\n"
                    "  a step usually takes 30 ms: .*\n"
                    "  between steps it waits 29 ms \\(49 % of its time\\): 29 ms Sleeping\n"));
  EXPECT_THAT(FormatJson(diagnosis), ContainsRegex(R"("between_ns":293[0-9]{5})"));
}

// A training program that sleeps briefly in each step isn't a server.
TEST_F(DiagnosisTest, AShortSleepInEachStepIsPartOfIt) {
  world.Run({.pause_ns = 5 * kMs}, 150);
  world.Run({.pause_ns = 45 * kMs}, 60);
  world.Run({.pause_ns = 5 * kMs}, 200);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, kAbstain);
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("The program itself slept"));
}

// Detected by the third slow step; the baseline reaches back minutes.
TEST_F(DiagnosisTest, StepsOfHalfAMinuteAreDiagnosedToo) {
  const World::Step usual{.cpu_ns = kNanosPerSecond, .gpu_ns = 29 * kNanosPerSecond};
  World::Step slow = usual;
  slow.behind_stranger_ns = 20 * kNanosPerSecond;
  world.Run(usual, 40);
  onset_ns = world.now_ns();
  world.Run(slow, 3);
  world.Wait(2 * kNanosPerSecond);
  const auto reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_NEAR(reports[0].incident.slowdown, 50.0 / 30, 0.1);
  EXPECT_NEAR(static_cast<double>(reports[0].incident.start_ns - onset_ns) / 1e9, 0, 31);
}

TEST_F(DiagnosisTest, ANewShapeIsANewTypeOfStepAndNoIncident) {
  world.Run({}, 150);
  for (int i = 0; i < 150; ++i) {
    // A larger batch: other kernels are part of the step.
    diagnosis.Ingest(model::Kernel{.process = world.workload,
                                   .device = world.device,
                                   .start_ns = world.now_ns() + kMs,
                                   .end_ns = world.now_ns() + 2 * kMs,
                                   .name = "gemm_large",
                                   .grid_x = 128});
    world.Run({.gpu_ns = 45 * kMs});
  }
  EXPECT_TRUE(world.Finish().empty());
}

TEST_F(DiagnosisTest, NoStepSpansATimeWithoutObservation) {
  world.Run({}, 150);
  LoseObservationFor(5 * kNanosPerSecond);
  world.Run({}, 150);
  EXPECT_TRUE(world.Finish().empty()) << FormatText(diagnosis);
}

// The same session continues when gpusonde restarts after it was killed.
TEST_F(DiagnosisTest, TimeInWhichGpusondeDidNotRunIsNotAHang) {
  for (const bool known : {false, true}) {
    Diagnosis of_this{{}};
    World here{of_this};
    here.Run({}, 150);
    const int64_t killed_ns = here.now_ns();
    if (known) of_this.MarkUnobserved(here.workload, killed_ns, killed_ns + 8 * kNanosPerSecond);
    here.Wait(8 * kNanosPerSecond);
    here.Run({}, 150);
    EXPECT_EQ(here.Finish().size(), known ? 0u : 1u) << FormatText(of_this);
  }
}

// Short and long steps alternate: each is within the usual range, so it takes dozens of them to detect that
// all are longer.
TEST_F(DiagnosisTest, TheBaselineSurvivesWhenTheOnsetIsManyStepsAgo) {
  const auto run = [&](int pairs, int64_t behind_ns) {
    for (int i = 0; i < pairs; ++i) {
      world.Run({.cpu_ns = kMs, .gpu_ns = kMs}, 1);
      world.Run({.cpu_ns = kMs, .behind_stranger_ns = behind_ns, .gpu_ns = 9 * kMs}, 1);
    }
  };
  run(500, 0);
  run(200, 6 * kMs);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_NEAR(reports[0].incident.slowdown, 1.5, 0.1);
}

TEST_F(DiagnosisTest, AHangThatBeganWithoutObservationIsDetected) {
  world.Run({}, 150);
  LoseObservationFor(5 * kNanosPerSecond);
  const int64_t observed_ns = world.now_ns();
  world.Wait(8 * kNanosPerSecond);
  world.Run({}, 150);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_NEAR(static_cast<double>(reports[0].incident.start_ns - observed_ns), 0, 1e6);
  EXPECT_NEAR(static_cast<double>(reports[0].incident.end_ns.value_or(0) - observed_ns), 8e9, 1e8);
}

TEST_F(DiagnosisTest, RowsThatArriveInOrderAreEvaluatedAtOnce) {
  world.Run({}, 150);
  onset_ns = world.now_ns();
  world.Run({.behind_stranger_ns = 60 * kMs}, 6);
  const auto reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.start_ns, onset_ns);
  EXPECT_LE(*reports[0].incident.seen_ns, world.now_ns());
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
  EXPECT_EQ(reports[0].incident.named_ns, reports[0].incident.seen_ns);
}

TEST_F(DiagnosisTest, IncidentsAreEmittedAsRows) {
  const auto reports = Disturb({.behind_stranger_ns = 40 * kMs});
  std::vector<model::Incident> incidents;
  size_t steps = 0, evidence = 0;
  for (const model::Batch& batch : diagnosis.DrainRows()) {
    EXPECT_TRUE(model::Validate(batch).has_value());
    if (batch.table == "steps") steps = batch.rows;
    if (batch.table == "evidence") evidence = batch.rows;
    if (batch.table == "incidents") incidents = model::RowsOf(model::kIncidents, batch);
  }
  EXPECT_GT(steps, 350u);
  EXPECT_GT(evidence, 5u);
  ASSERT_FALSE(incidents.empty());
  EXPECT_EQ(incidents.back().sentence, reports[0].incident.sentence);
  EXPECT_EQ(incidents.back().incident, incidents.front().incident);
  EXPECT_TRUE(diagnosis.DrainRows().empty());
  EXPECT_THAT(FormatText(diagnosis), HasSubstr(reports[0].incident.sentence));
  EXPECT_THAT(FormatJson(diagnosis), HasSubstr("\"cause\":\"cpu_contention\""));
}

TEST_F(DiagnosisTest, PackedKernelsGiveTheSameIncident) {
  Diagnosis other{{}};
  World packed(other);
  packed.PackKernels();
  for (World* each : {&world, &packed}) {
    each->Run({}, 150);
    each->Run({.gpu_ns = 60 * kMs}, 60);
  }
  const auto reports = world.Finish();
  const auto of_packs = packed.Finish();
  ASSERT_EQ(reports.size(), 1u);
  ASSERT_EQ(of_packs.size(), 1u);
  EXPECT_GT(During(reports[0], "step.gpu_run"), 50);
  EXPECT_EQ(of_packs[0].incident.sentence, reports[0].incident.sentence);
  EXPECT_EQ(of_packs[0].incident.start_ns, reports[0].incident.start_ns);
  EXPECT_EQ(During(of_packs[0], "step.gpu_run"), During(reports[0], "step.gpu_run"));
}

TEST_F(DiagnosisTest, MalformedRowsChangeNothing) {
  diagnosis.Ingest(model::KernelPack{.process = world.workload,
                                     .name = "pack",
                                     .start_ns = INT64_MAX,
                                     .offsets_ns = {1, INT64_MIN, -5},
                                     .durations_ns = {INT64_MAX, -1}});
  diagnosis.Ingest(model::Kernel{.process = world.workload, .start_ns = 5, .end_ns = 1, .name = "backwards"});
  diagnosis.Ingest(
      model::Kernel{.process = world.workload, .start_ns = -7, .end_ns = INT64_MAX, .name = "endless"});
  diagnosis.Ingest(model::Signal{
      .bucket_ns = 0, .metric = "thread.running", .process = world.workload, .tid = 1, .values = {1}});
  diagnosis.Ingest(
      model::Signal{.start_ns = INT64_MIN + 1, .bucket_ns = 1, .metric = "nonsense", .values = {INT64_MAX}});
  diagnosis.Ingest(model::Signal{.start_ns = kBegin,
                                 .bucket_ns = 10 * kMs,
                                 .metric = "thread.waiting",
                                 .process = world.workload,
                                 .tid = World::kLaunchThread,
                                 .values = {INT64_MAX}});
  world.Run({}, 500);
  EXPECT_TRUE(world.Finish().empty());
}

}  // namespace
}  // namespace gpusonde::diagnose
