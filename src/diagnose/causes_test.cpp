// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "diagnose/diagnosis.h"
#include "diagnose/explain.h"
#include "diagnose/print.h"
#include "diagnose/testing/world.h"

// Causes on the network, limits, disks and other ranks; diagnosis_test.cpp tests the others.
namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;
using testing::Not;

struct CausesTest : testing::Test {
  Diagnosis diagnosis{{}};
  World world{diagnosis};
  int slow_steps = 60;

  // Runs 150 clean steps, then slow ones; calls `add_signals` after each with the time at which it began.
  template <class AddSignals>
  Report Slow(const World::Step& clean, const World::Step& slow, AddSignals add_signals) {
    world.Run(clean, 150);
    for (int i = 0; i < slow_steps; ++i) {
      const int64_t from_ns = world.now_ns();
      world.Run(slow, 1);
      add_signals(from_ns);
    }
    for (const Report& report : world.Finish())
      if (report.incident.process == world.workload) return report;
    ADD_FAILURE() << "no incident\n" << FormatText(diagnosis);
    return {};
  }
  Report Slow(const World::Step& clean, const World::Step& slow) {
    return Slow(clean, slow, [](int64_t) {});
  }

  static double Confidence(const Report& report, std::string_view cause) {
    const auto found =
        std::ranges::find(report.causes, cause, [](const Candidate& each) { return each.cause->name; });
    return found == report.causes.end() ? 0 : found->confidence;
  }
};

TEST_F(CausesTest, PacketsThatQueueAtADeviceAreNetworkContentionAndItsSenderIsNamed) {
  const Report report = Slow({.network_ns = 2 * kMs}, {.network_ns = 42 * kMs}, [&](int64_t from_ns) {
    world.Sum("network.queued", from_ns, 41 * kMs, world.workload);
    world.Sum("network.bytes", from_ns, 1'000'000, world.stranger);
  });
  EXPECT_EQ(report.incident.cause, "network_contention") << FormatText(diagnosis);
  EXPECT_GT(report.incident.confidence, 0.9);
  EXPECT_THAT(report.incident.sentence, HasSubstr("stress (process 99) in /batch.slice sent"));
}

TEST_F(CausesTest, ALinkThatIsNarrowForAPartOfTheTimeHasNoMeanNumberOfLanes) {
  world.Gauge("gpu.pcie.width", 16);
  int readings = 0;
  const Report report = Slow({.copy_ns = 2 * kMs}, {.copy_ns = 42 * kMs},
                             [&](int64_t) { world.Gauge("gpu.pcie.width", readings++ % 2 == 0 ? 2 : 16); });
  EXPECT_EQ(report.incident.cause, "pcie_pressure") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("its link has 2 lanes instead of 16"));
}

TEST_F(CausesTest, AProgramThatIsAllowedFewerCpusIsSlowForThat) {
  const World::Step on_one{.behind_loader_ns = 20 * kMs, .one_cpu = true, .loader_hidden_ns = 20 * kMs};
  const auto run = [&](const World::Step& step, int64_t cpus) {
    const int64_t from_ns = world.now_ns();
    world.Run(step, 1);
    world.Sum("process.cpus", from_ns, cpus * (world.now_ns() - from_ns), world.workload);
  };
  for (int i = 0; i < 150; ++i) run({.loader_hidden_ns = 20 * kMs}, 2);
  for (int i = 0; i < 60; ++i) run(on_one, 1);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "fewer_cpus") << FormatText(diagnosis);
  EXPECT_GT(reports[0].incident.confidence, 0.9);
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("may run on 1 CPU (2 CPUs before)"));
}

TEST_F(CausesTest, AQuotaIsGivenWithWhatItWasBefore) {
  const auto sentence_of = [](double cpus_before, double cpus) {
    Diagnosis from_start{{}};
    World program{from_start};
    const auto run = [&](const World::Step& step, double quota, int64_t throttled_ns) {
      const int64_t from_ns = program.now_ns();
      program.Run(step, 1);
      program.Sum("cgroup.throttled", from_ns, throttled_ns, program.workload);
      const auto allowed_ns = static_cast<int64_t>(quota * static_cast<double>(program.now_ns() - from_ns));
      if (quota > 0) program.Sum("cgroup.cpu_quota", from_ns, allowed_ns, program.workload);
    };
    for (int i = 0; i < 150; ++i) run({}, cpus_before, 0);
    for (int i = 0; i < 60; ++i) run({.behind_nobody_ns = 50 * kMs}, cpus, 50 * kMs);
    const auto reports = program.Finish();
    return reports.size() == 1 && reports[0].incident.cause == "cpu_quota" ? reports[0].incident.sentence
                                                                           : FormatText(from_start);
  };
  EXPECT_THAT(sentence_of(0, 0.5), HasSubstr("its cgroup's CPU quota of 0.5 CPUs (none before) throttled"));
  EXPECT_THAT(sentence_of(2, 0.25), HasSubstr("CPU quota of 0.25 CPUs (2 CPUs before) throttled the step"));
  EXPECT_THAT(sentence_of(1, 1), HasSubstr("its cgroup's CPU quota of 1 CPU throttled the step"));
  EXPECT_THAT(sentence_of(0, 0), HasSubstr("its cgroup's CPU quota throttled the step"));
  EXPECT_THAT(sentence_of(0, 0), HasSubstr("; the cgroup is /train.slice, or one above it."));
}

// As after its files have left the page cache: gpusonde reads programs anew, too.
TEST_F(CausesTest, AProgramThatReadsMoreItselfIsNamedAndGpusondeIsNot) {
  const Id128 self{1, 77};
  world.AddProcess(self, 96, 1, "gpusonde-files", "/");
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.blocked_io_ns = 50 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 500'000'000, self);
  world.Sum("disk.bytes", from_ns, 300'000'000, world.workload);
  world.Sum("disk.bytes", from_ns, 100'000'000, world.stranger);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.cause, "block_io");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("the program's own train read or wrote"));
  EXPECT_THAT(reports[0].incident.sentence, Not(HasSubstr("gpusonde")));
}

TEST_F(CausesTest, AProgramOfLowPriorityThatWaitsForACpuIsSaidToBeOne) {
  const auto nice = [this](int64_t value) {
    return [this, value](int64_t from_ns) {
      world.Sum("process.nice", from_ns, value * (world.now_ns() - from_ns), world.workload);
    };
  };
  EXPECT_THAT(Slow({}, {.behind_stranger_ns = 20 * kMs}, nice(15)).incident.sentence,
              HasSubstr(" in /batch.slice; the program's own priority is low (nice 15). Move"));
}

TEST_F(CausesTest, SaysHowMuchCpuTimeGpusondeItselfTook) {
  const Report report = Slow({}, {.behind_stranger_ns = 20 * kMs, .behind_gpusonde_ns = 10 * kMs});
  EXPECT_EQ(report.incident.cause, "cpu_contention");
  EXPECT_THAT(report.incident.sentence,
              HasSubstr("20 ms of each step were taken by stress (process 99) in /batch.slice; "
                        "10 ms of each step were taken by gpusonde itself"));
}

// What delays them isn't known: it may be the agent, which loads the program that observes the signals.
TEST_F(CausesTest, SlowStepsFromBeforeHostSignalsAreNoIncident) {
  const auto incidents_of = [](bool observed, bool awaits_signals = true) {
    Diagnosis from_start{{.awaits_signals = awaits_signals}};
    World program{from_start};
    program.observed = observed;
    program.Run({}, 35);
    program.Run({.behind_stranger_ns = 40 * kMs}, 12);
    program.observed = true;
    program.Run({}, 200);
    return program.Finish();
  };
  EXPECT_EQ(incidents_of(true).size(), 1u);
  EXPECT_THAT(incidents_of(false), testing::IsEmpty());
  EXPECT_EQ(incidents_of(false, false).size(), 1u) << "as those of a trace";
}

TEST_F(CausesTest, DoesNotNameGpusondeForAFewPercentOfADelay) {
  const Report report = Slow({}, {.behind_gpusonde_ns = kMs, .behind_nobody_ns = 20 * kMs});
  EXPECT_EQ(report.incident.cause, "cpu_contention");
  EXPECT_THAT(report.incident.sentence, Not(HasSubstr("gpusonde")));
}

TEST_F(CausesTest, AbstainsFromAWaitForPacketsThatNoSignalExplains) {
  const Report report = Slow({.network_ns = 2 * kMs}, {.network_ns = 42 * kMs});
  EXPECT_EQ(report.incident.cause, kAbstain) << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("\"Network\""));
}

TEST_F(CausesTest, RetransmitsArePacketLossAndNotContention) {
  const Report report = Slow({.network_ns = 2 * kMs}, {.network_ns = 60 * kMs}, [&](int64_t from_ns) {
    world.Sum("network.retransmits", from_ns, 1, world.workload);
    world.Sum("network.queued", from_ns, kMs, world.workload);
  });
  EXPECT_EQ(report.incident.cause, "packet_loss") << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "network_contention"), 0.5);
}

// With total loss the retransmission timeout doubles, so that fewer segments are sent than with partial loss.
TEST_F(CausesTest, ADisturbanceThatBecomesMuchWorseIsOneIncident) {
  world.Run({.network_ns = 2 * kMs}, 150);
  const auto lose = [&](int64_t network_ns, int64_t segments, int steps) {
    for (int i = 0; i < steps; ++i) {
      const int64_t from_ns = world.now_ns();
      world.Run({.network_ns = network_ns});
      world.Sum("network.retransmits", from_ns, segments, world.workload);
    }
  };
  lose(40 * kMs, 40, 60);
  lose(400 * kMs, 1, 10);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "packet_loss") << FormatText(diagnosis);
}

// A connection of which one packet is lost again and again sends nothing else: the program hardly
// retransmits, but does in each of its few steps. Before, while no step was slow enough, it retransmitted
// more in a second.
TEST_F(CausesTest, StallsForRetransmissionsArePacketLossAlthoughMoreWereRetransmittedPerSecondBefore) {
  world.Run({.network_ns = 2 * kMs}, 100);
  for (int i = 0; i < 50; ++i) {
    const int64_t from_ns = world.now_ns();
    world.Run({.network_ns = 2 * kMs});
    if (i % 5 == 0) world.Sum("network.retransmits", from_ns, 3, world.workload);
  }
  for (int i = 0; i < 12; ++i) {
    const int64_t from_ns = world.now_ns();
    world.Run({.network_ns = 800 * kMs});
    world.Sum("network.retransmits", from_ns, 2, world.workload);
  }
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "packet_loss") << FormatText(diagnosis);
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("200.0 TCP segments per 100 steps"));
}

// A lossy link loses as many packets of each step, however slow steps are for another reason.
TEST_F(CausesTest, AsManyRetransmissionsPerStepAsBeforeAreNoCause) {
  const auto run = [this](int64_t network_ns, int steps) {
    for (int i = 0; i < steps; ++i) {
      const int64_t from_ns = world.now_ns();
      world.Run({.network_ns = network_ns});
      world.Sum("network.retransmits", from_ns, 1, world.workload);
    }
  };
  run(2 * kMs, 150);
  run(60 * kMs, 60);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, kAbstain) << FormatText(diagnosis);
  EXPECT_EQ(Confidence(reports[0], "packet_loss"), 0);
}

TEST_F(CausesTest, AMuchWorseSlowdownWithinAnIncidentIsNotAttributedToTheFirst) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 8 * kMs}, 150);
  world.Run({.blocked_io_ns = 150 * kMs}, 30);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 2u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_NEAR(reports[0].incident.slowdown, 1.27, 0.05);
  EXPECT_LT(Confidence(reports[0], "block_io"), 0.2);
  EXPECT_EQ(reports[0].incident.end_ns, reports[1].incident.start_ns);
}

TEST_F(CausesTest, RetransmitsOfAnotherProgramAreNoCause) {
  const Report report = Slow({.network_ns = 2 * kMs}, {.network_ns = 60 * kMs}, [&](int64_t from_ns) {
    world.Sum("network.retransmits", from_ns, 50, world.stranger);
  });
  EXPECT_EQ(report.incident.cause, kAbstain) << FormatText(diagnosis);
}

TEST_F(CausesTest, WaitingForADiskAtTheCgroupsLimitIsThrottlingEvenIfOthersRead) {
  const Report report = Slow({.blocked_io_ns = kMs}, {.blocked_io_ns = 50 * kMs}, [&](int64_t from_ns) {
    world.Sum("cgroup.io_throttled", from_ns, world.now_ns() - from_ns, world.workload);
    world.Sum("disk.bytes", from_ns, 3'000'000, world.stranger);
  });
  EXPECT_EQ(report.incident.cause, "io_throttling") << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "block_io"), 0.5);
}

TEST_F(CausesTest, TwoCausesAreNamedAndNoThird) {
  const Report report =
      Slow({.blocked_io_ns = kMs}, {.behind_stranger_ns = 18 * kMs, .blocked_io_ns = 51 * kMs},
           [&](int64_t from_ns) {
             world.Sum("cgroup.io_throttled", from_ns, 40 * kMs, world.workload);
             world.Sum("disk.bytes", from_ns, 3'000'000, world.stranger);
           });
  EXPECT_EQ(report.incident.cause, "io_throttling") << FormatText(diagnosis);
  EXPECT_GT(Confidence(report, "cpu_contention"), 0.5) << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "block_io"), 0.5) << FormatText(diagnosis);
}

TEST_F(CausesTest, ARankThatComesLastIsNamedWithTheReason) {
  world.AddRank();
  const Report report =
      Slow({.rank_runs_ns = kMs}, {.rank_runs_ns = kMs, .rank_behind_stranger_ns = 40 * kMs});
  EXPECT_EQ(report.incident.cause, "straggler") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("train (process 13) came last, 40 ms a step later"));
  EXPECT_THAT(report.incident.sentence, HasSubstr("stress (process 99) in /batch.slice"));
  // The rank itself waited for no packet: its own incident reports only the root.
  std::vector<Report> reports = diagnosis.Reports();
  const auto of_rank =
      std::ranges::find(reports, world.rank, [](const Report& each) { return each.incident.process; });
  ASSERT_NE(of_rank, reports.end());
  EXPECT_EQ(of_rank->incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_THAT(FormatJson(diagnosis), HasSubstr("root.cpu_contention"));
}

class IdleRankTest : public CausesTest {
 protected:
  // The workload's incident after one step in which the other rank was idle for 8 s.
  Report Idle(const World::Step& step) {
    world.AddRank();
    world.Run({.rank_runs_ns = kMs}, 150);
    world.Run(step);
    world.Run({.rank_runs_ns = kMs}, 150);
    for (const Report& report : world.Finish())
      if (report.incident.process == world.workload) return report;
    ADD_FAILURE() << "no incident";
    return {};
  }
};

TEST_F(IdleRankTest, ARankThatIsIdleForSecondsIsAHangAndIsNamed) {
  const Report report = Idle({.rank_idle_ns = 8 * kNanosPerSecond});
  EXPECT_EQ(report.incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence,
              HasSubstr("a step waited 8 s for train (process 13), which did nothing"));
  EXPECT_LT(Confidence(report, "straggler"), 0.5);
}

TEST_F(IdleRankTest, ARankThatIsStoppedForSecondsIsAHangThatSaysSo) {
  const Report report = Idle({.rank_stopped_ns = 8 * kNanosPerSecond});
  EXPECT_EQ(report.incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence,
              HasSubstr("a step waited 8 s for train (process 13), which was stopped by a signal"));
}

TEST_F(CausesTest, AWaitOfSecondsForAProcessOutsideTheProgramIsAHangThatNamesIt) {
  world.Run({}, 150);
  world.Run({.outside_ns = 8 * kNanosPerSecond});
  world.Run({}, 150);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(
      reports[0].incident.sentence,
      HasSubstr("waited 8 s for stress (process 99) in /batch.slice, which is not a part of the program"));
}

// As a read from a file server that is gone, and comes back.
TEST_F(CausesTest, AStepThatIsBlockedForSecondsWithoutDisksIsAHang) {
  world.Run({}, 150);
  world.Run({.blocked_ns = 8 * kNanosPerSecond});
  world.Run({}, 150);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("a step was blocked in the kernel for 8 s, as by a disk or a file server"));
}

TEST_F(CausesTest, AStepThatIsBlockedForSecondsByDisksIsTheDisks) {
  world.Run({}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.blocked_io_ns = 3 * kNanosPerSecond, .blocked_ns = 6 * kNanosPerSecond});
  world.Sum("disk.bytes", from_ns, 5'000'000'000, world.stranger);
  world.Run({}, 150);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "block_io") << FormatText(diagnosis);
}

// A step that never ends, of a program that used to wait for a loader.
class HungLoaderTest : public CausesTest {
 protected:
  std::string Hang(const std::function<void()>& meanwhile) {
    world.Run({.loader_runs_ns = kMs}, 150);
    const int64_t until_ns = world.now_ns() + 10 * kNanosPerSecond;
    meanwhile();
    world.Wait(until_ns - world.now_ns());
    const std::vector<Report> reports = diagnosis.Reports();
    if (reports.size() != 1) return FormatText(diagnosis);
    EXPECT_EQ(reports[0].incident.cause, "hang");
    return reports[0].incident.sentence;
  }
  // The same; the agent reads once a second that a process is in a state.
  std::string HangIn(const std::string& metric, const Id128& process) {
    return Hang([&] {
      for (int second = 0; second < 10; ++second) {
        const int64_t from_ns = world.now_ns();
        world.Wait(kNanosPerSecond);
        if (second >= 2) world.Sum(metric, from_ns, kNanosPerSecond, process);
      }
    });
  }
  static constexpr const char* kLoader = "; loader (process 12), which it had waited for before, ";
};

TEST_F(HungLoaderTest, ALoaderThatHasEndedIsNamed) {
  const std::string sentence =
      Hang([&] { world.AddProcess(world.loader, 12, 11, "loader", "/train.slice", world.now_ns()); });
  EXPECT_THAT(sentence, HasSubstr(std::string(kLoader) + "ended"));
}

TEST_F(HungLoaderTest, ALoaderThatWaitsItselfIsNamed) {
  EXPECT_THAT(Hang([] {}), HasSubstr(std::string(kLoader) + "did nothing either"));
}

TEST_F(HungLoaderTest, ALoaderThatIsStoppedIsSaidToBe) {
  EXPECT_THAT(HangIn("process.stopped", world.loader),
              HasSubstr(std::string(kLoader) + "is stopped by a signal or a tracer"));
}

TEST_F(HungLoaderTest, ALoaderThatIsBlockedIsSaidToBe) {
  EXPECT_THAT(HangIn("process.blocked", world.loader),
              HasSubstr(std::string(kLoader) + "is blocked in the kernel"));
}

TEST_F(HungLoaderTest, AProgramThatIsBlockedIsSaidToBe) {
  EXPECT_THAT(
      HangIn("process.blocked", world.workload),
      HasSubstr(
          "; a thread of it is blocked in the kernel, as by a disk or a file server that doesn't answer"));
}

TEST_F(HungLoaderTest, ALoaderThatEndedLongAgoIsNot) {
  const int64_t long_ago_ns = world.now_ns() - 20 * kNanosPerSecond;
  const std::string sentence =
      Hang([&] { world.AddProcess(world.loader, 12, 11, "loader", "/train.slice", long_ago_ns); });
  EXPECT_THAT(sentence, Not(HasSubstr("loader")));
}

// A step that takes seconds of a program whose GPU has nothing to do, as compilers make them.
class CompilingTest : public CausesTest {
 protected:
  // The incident after the given utilization of the GPU during 9 s.
  Report Compile(std::optional<double> utilization, bool in_loader) {
    if (utilization.has_value()) world.Gauge("gpu.utilization", 60);
    world.Run({.loader_runs_ns = kMs}, 150);
    for (int second = 0; second < 9; ++second) {
      world.Compute(kNanosPerSecond, in_loader);
      if (utilization.has_value()) world.Gauge("gpu.utilization", *utilization);
    }
    const std::vector<Report> reports = diagnosis.Reports();
    EXPECT_EQ(reports.size(), 1u) << FormatText(diagnosis);
    return reports.empty() ? Report{} : reports.front();
  }
};

TEST_F(CompilingTest, AStepThatOnlyComputesIsNoHang) {
  const Report report = Compile(0, false);
  EXPECT_EQ(report.incident.cause, "more_cpu_work") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("has computed for 7 s, while the GPU had nothing to do"));
  EXPECT_LT(Confidence(report, "hang"), 0.5);
}

TEST_F(CompilingTest, AStepThatWaitsForAProcessThatComputesIsNoHang) {
  const Report report = Compile(0, true);
  EXPECT_EQ(report.incident.cause, "slow_data_loading") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("own processes (loader), which were running"));
}

// A thread that waits for a kernel which never ends may run all the time.
TEST_F(CompilingTest, AStepThatRunsWhileTheGpuIsBusyIsAHang) {
  const Report report = Compile(100, false);
  EXPECT_EQ(report.incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("; the launch thread ran: it spins in a wait for the GPU"));
  EXPECT_LT(Confidence(report, "more_cpu_work"), 0.5);
}

TEST_F(CompilingTest, WithoutTheUtilizationOfTheGpuItIsAHang) {
  EXPECT_EQ(Compile(std::nullopt, false).incident.cause, "hang") << FormatText(diagnosis);
}

TEST_F(CausesTest, AProgramThatIsStoppedNowAndThenNamesWhoContinuesIt) {
  const Report report = Slow({}, {.stopped_ns = 30 * kMs});
  EXPECT_EQ(report.incident.cause, "stopped") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr("stress (process 99) in /batch.slice let it continue"));
}

TEST_F(CausesTest, AHelperThatIsStoppedIsNamed) {
  const Report report =
      Slow({.loader_runs_ns = 5 * kMs}, {.loader_runs_ns = 5 * kMs, .loader_stopped_ns = 30 * kMs});
  EXPECT_EQ(report.incident.cause, "stopped") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence,
              HasSubstr("for loader (process 12) in /train.slice, which was stopped by a signal"));
}

// The wait for the GPU is over long before the program may go on.
TEST_F(CausesTest, AProgramThatIsStoppedWhileItWaitsForTheGpuDoesNotWaitForIt) {
  const Report report = Slow({.gpu_ns = 5 * kMs}, {.stopped_ns = 30 * kMs, .gpu_ns = 5 * kMs});
  EXPECT_EQ(report.incident.cause, "stopped") << FormatText(diagnosis);
}

TEST_F(CausesTest, AnotherGpuProgramOnTheMachineIsNotARank) {
  world.AddRank();
  const Report report = Slow({.network_ns = kMs}, {.behind_stranger_ns = 40 * kMs, .network_ns = kMs});
  EXPECT_EQ(report.incident.cause, "cpu_contention") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, Not(HasSubstr("rank")));
}

TEST_F(CausesTest, MoreCpuTimeForTheSameWorkIsASlowerCpuWithLowConfidence) {
  slow_steps = 90;  // 3.3 s: with this confidence, a small slow-down must last
  const Report report =
      Slow({.loader_hidden_ns = 10 * kMs}, {.cpu_ns = 17 * kMs, .loader_hidden_ns = 10 * kMs});
  EXPECT_EQ(report.incident.cause, "slow_cpu") << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "more_cpu_work"), 0.5);
  EXPECT_LT(report.incident.confidence, 0.85);
  EXPECT_THAT(report.incident.sentence, HasSubstr("unless the program itself does more"));
}

// A launch thread that only waits runs for a moment more when it waits longer.
TEST_F(CausesTest, ALaunchThreadThatHardlyRunsDoesNotTellThatTheCpuIsSlower) {
  const Report report =
      Slow({.cpu_ns = kMs / 2, .loader_runs_ns = 10 * kMs}, {.cpu_ns = kMs, .loader_runs_ns = 25 * kMs});
  EXPECT_EQ(report.incident.cause, "slow_data_loading") << FormatText(diagnosis);
  EXPECT_GT(report.incident.confidence, 0.9) << FormatText(diagnosis);
}

TEST_F(CausesTest, MuchMoreCpuTimeIsMoreWorkOfTheProgram) {
  const Report report = Slow({}, {.cpu_ns = 40 * kMs});
  EXPECT_EQ(report.incident.cause, "more_cpu_work") << FormatText(diagnosis);
  EXPECT_GT(report.incident.confidence, 0.9);
  EXPECT_THAT(report.incident.sentence,
              HasSubstr("40 ms of CPU time per step (9.9 ms before), 4.0× as much"));
}

// Contention for caches alone makes a loader run 10 % longer.
TEST_F(CausesTest, ALoaderThatHardlyRunsLongerIsLessLikelyTheCauseThanTheDisk) {
  const Report report = Slow({.loader_runs_ns = 40 * kMs},
                             {.loader_runs_ns = 46 * kMs, .blocked_io_ns = 5 * kMs}, [&](int64_t from_ns) {
                               world.Sum("host.pressure.io", from_ns, world.now_ns() - from_ns, std::nullopt);
                             });
  EXPECT_EQ(report.incident.cause, "block_io") << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "slow_data_loading"), 0.5);
}

TEST_F(CausesTest, ALoaderThatAloneRunsLongerIsNotASlowerCpu) {
  const Report report = Slow({.loader_runs_ns = 5 * kMs}, {.cpu_ns = 12 * kMs, .loader_runs_ns = 40 * kMs});
  EXPECT_EQ(report.incident.cause, "slow_data_loading") << FormatText(diagnosis);
  EXPECT_LT(Confidence(report, "slow_cpu"), 0.5) << FormatText(diagnosis);
}

// Python's lock: the launch thread waits for a thread that computes, and its own CPU time grows a little.
TEST_F(CausesTest, AnotherThreadThatRunsMuchLongerIsNotASlowerCpu) {
  const Report report =
      Slow({}, {.cpu_ns = 14 * kMs, .behind_stranger_ns = 9 * kMs, .own_thread_runs_ns = 12 * kMs});
  EXPECT_EQ(report.incident.cause, "slow_data_loading") << FormatText(diagnosis);
  EXPECT_THAT(report.incident.sentence, HasSubstr(" Waiting for other threads of the program ("));
  EXPECT_THAT(report.incident.sentence, HasSubstr("only one thread runs at a time"));
  EXPECT_THAT(report.incident.sentence, Not(HasSubstr("loader workers")));
}

TEST_F(CausesTest, OtherThreadsThatRanBeforeAndRunAsMuchLongerAreASlowerCpu) {
  slow_steps = 90;
  const Report report =
      Slow({.own_thread_runs_ns = 10 * kMs}, {.cpu_ns = 14 * kMs, .own_thread_runs_ns = 14 * kMs});
  EXPECT_LT(Confidence(report, "slow_data_loading"), 0.5) << FormatText(diagnosis);
}

TEST_F(CausesTest, AStepThatWaitsSecondsForItsOwnIdleThreadsSaysSo) {
  world.Run({}, 150);
  world.Run({.own_thread_idle_ns = 8 * kNanosPerSecond});
  world.Run({}, 150);
  const std::vector<Report> reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "hang") << FormatText(diagnosis);
  EXPECT_THAT(reports[0].incident.sentence,
              HasSubstr("a step waited 8 s for other threads of its process, which did nothing"));
}

// Interrupts on the CPU of a loader that the step waits for: entering and leaving them is its CPU time.
TEST_F(CausesTest, InterruptsExplainTheCpuTimeThatTheyCostALoader) {
  const Report report = Slow({.cpu_ns = 10 * kMs, .loader_runs_ns = 5 * kMs},
                             {.cpu_ns = 22 * kMs, .loader_runs_ns = 17 * kMs, .interrupted_ns = 12 * kMs});
  EXPECT_EQ(report.incident.cause, "interrupt_pressure") << FormatText(diagnosis);
  EXPECT_GT(report.incident.confidence, 0.9) << FormatText(diagnosis);
}

}  // namespace
}  // namespace gpusonde::diagnose
