// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagnose/diagnosis.h"
#include "diagnose/print.h"
#include "diagnose/testing/world.h"

// Several disturbances of one program, one after the other or at once.
namespace gpusonde::diagnose {
namespace {

using testing::ElementsAre;

// Steps take 30 ms, and 50 ms in most disturbances.
constexpr World::Step kContention{.behind_stranger_ns = 20 * kMs};
constexpr World::Step kDisks{.blocked_io_ns = 20 * kMs};
constexpr World::Step kBoth{.behind_stranger_ns = 20 * kMs, .blocked_io_ns = 20 * kMs};
constexpr int64_t kSettle = 12 * kNanosPerSecond;

// A program whose steps are disturbed.
struct Disturbed {
  // Runs this step for a while, and returns when that ended.
  int64_t RunFor(const World::Step& step, int64_t ns) {
    for (const int64_t until_ns = world.now_ns() + ns; world.now_ns() < until_ns;) world.Run(step, 1);
    return world.now_ns();
  }

  // Runs calm steps until all incidents have ended. Only those of the program itself.
  std::vector<Report> Reports(const World::Step& calm = {}) {
    RunFor(calm, 8 * kNanosPerSecond);
    std::vector<Report> reports = world.Finish();
    std::erase_if(reports, [&](const Report& each) { return each.incident.process != world.workload; });
    return reports;
  }

  Diagnosis diagnosis{{}};
  World world{diagnosis};
};

std::vector<std::string> Causes(const std::vector<Report>& reports) {
  std::vector<std::string> causes;
  for (const Report& report : reports) causes.push_back(report.incident.cause);
  return causes;
}

void ExpectNamesOnly(const Report& report, const std::string& cause) {
  for (const Candidate& each : report.causes)
    EXPECT_TRUE(each.cause->name == cause || each.confidence < 0.5) << each.cause->name;
}

TEST(ChainedFaultsTest, AnotherCauseAfterAShortPauseIsAnotherIncident) {
  for (const int64_t pause_ns : {600 * kMs, 1500 * kMs, 2500 * kMs}) {
    Disturbed program;
    const int64_t first_ns = program.RunFor({}, kSettle);
    const int64_t over_ns = program.RunFor(kContention, 5 * kNanosPerSecond);
    const int64_t second_ns = program.RunFor({}, pause_ns);
    program.RunFor(kDisks, 5 * kNanosPerSecond);
    const auto reports = program.Reports();
    ASSERT_THAT(Causes(reports), ElementsAre("cpu_contention", "block_io")) << FormatText(program.diagnosis);
    EXPECT_NEAR(static_cast<double>(reports[0].incident.start_ns - first_ns) / kMs, 0, 75);
    EXPECT_NEAR(static_cast<double>(reports[0].incident.end_ns.value_or(0) - over_ns) / kMs, 0, 75);
    EXPECT_NEAR(static_cast<double>(reports[1].incident.start_ns - second_ns) / kMs, 0, 75);
    EXPECT_NEAR(reports[0].incident.slowdown, 50.0 / 30, 0.05);
    EXPECT_NEAR(reports[1].incident.slowdown, 50.0 / 30, 0.05);
    ExpectNamesOnly(reports[0], "cpu_contention");
    ExpectNamesOnly(reports[1], "block_io");
  }
}

// Their steps of two seconds are more than are remembered one by one.
TEST(ChainedFaultsTest, AHangAfterASlowdownIsAnIncidentOfItsOwn) {
  Diagnosis diagnosis{{}};
  World world{diagnosis};
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 30 * kMs}, 60);
  const int64_t hang_ns = world.now_ns();
  world.Wait(12 * kNanosPerSecond);
  const std::vector<Report> reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 2u) << FormatText(diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
  EXPECT_EQ(reports[0].incident.end_ns, hang_ns);
  EXPECT_EQ(reports[1].incident.cause, "hang");
  EXPECT_EQ(reports[1].incident.start_ns, hang_ns);
  EXPECT_THAT(reports[1].incident.sentence,
              testing::ContainsRegex(
                  "A step has taken 1[0-2][.][0-9] s [(]usually 30 ms[)].*no step has ended for 1[0-2] s"));
}

TEST(ChainedFaultsTest, ShortStepsAreSplitToo) {
  for (const int64_t pause_ns : {int64_t{0}, 1500 * kMs}) {
    Disturbed program;
    constexpr World::Step kCalm{.cpu_ns = kMs, .gpu_ns = 2 * kMs};
    World::Step contention = kCalm, disks = kCalm;
    contention.behind_stranger_ns = disks.blocked_io_ns = 3 * kMs;
    program.RunFor(kCalm, kSettle);
    program.RunFor(contention, 6 * kNanosPerSecond);
    const int64_t second_ns = program.RunFor(kCalm, pause_ns);
    program.RunFor(disks, 6 * kNanosPerSecond);
    const auto reports = program.Reports(kCalm);
    ASSERT_THAT(Causes(reports), ElementsAre("cpu_contention", "block_io")) << FormatText(program.diagnosis);
    EXPECT_NEAR(static_cast<double>(reports[1].incident.start_ns - second_ns) / kMs, 0, 150);
    for (const Report& report : reports) EXPECT_NEAR(report.incident.slowdown, 2, 0.1);
  }
}

TEST(ChainedFaultsTest, ACauseThatTakesTheOthersPlaceBeginsAnotherIncident) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor(kContention, 5 * kNanosPerSecond);
  const int64_t second_ns = program.world.now_ns();
  program.RunFor(kDisks, 5 * kNanosPerSecond);
  const auto reports = program.Reports();
  ASSERT_THAT(Causes(reports), ElementsAre("cpu_contention", "block_io")) << FormatText(program.diagnosis);
  EXPECT_EQ(reports[0].incident.end_ns, reports[1].incident.start_ns);
  EXPECT_NEAR(static_cast<double>(reports[1].incident.start_ns - second_ns) / kMs, 0, 75);
}

// Of what the second loses in two seconds, what the first lost in one of them is less than a tenth.
TEST(ChainedFaultsTest, AMuchLargerDisturbanceBeginsWhereTheFirstEnds) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor(kContention, 5 * kNanosPerSecond);
  const int64_t second_ns = program.world.now_ns();
  program.RunFor({.blocked_io_ns = 45 * kMs}, 5 * kNanosPerSecond);
  const auto reports = program.Reports();
  ASSERT_THAT(Causes(reports), ElementsAre("cpu_contention", "block_io")) << FormatText(program.diagnosis);
  EXPECT_NEAR(static_cast<double>(reports[1].incident.start_ns - second_ns) / kMs, 0, 75);
}

// For a second steps were a little slow for no reason: nothing that was reported.
TEST(ChainedFaultsTest, ALargeDisturbanceBeginsWithItsFirstLargeStep) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor({.lost_ns = 5 * kMs}, 900 * kMs);
  EXPECT_TRUE(program.diagnosis.Reports().empty());
  const int64_t large_ns = program.world.now_ns();
  program.RunFor({.behind_stranger_ns = 60 * kMs}, 5 * kNanosPerSecond);
  const auto reports = program.Reports();
  ASSERT_THAT(Causes(reports), ElementsAre("cpu_contention")) << FormatText(program.diagnosis);
  EXPECT_EQ(reports[0].incident.start_ns, large_ns);
  EXPECT_NEAR(reports[0].incident.slowdown, 3, 0.1);
  EXPECT_LE(*reports[0].incident.seen_ns - large_ns, 500 * kMs);
}

TEST(ChainedFaultsTest, ACauseThatOutlastsTheFirstBeginsAnotherIncident) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor(kContention, 4 * kNanosPerSecond);
  program.RunFor(kBoth, 2 * kNanosPerSecond);
  program.RunFor(kDisks, 4 * kNanosPerSecond);
  EXPECT_THAT(Causes(program.Reports()), ElementsAre("cpu_contention", "block_io"))
      << FormatText(program.diagnosis);
}

TEST(ChainedFaultsTest, LongStepsAreComparedOverLongerTimes) {
  Disturbed program;
  constexpr int64_t kGpu = 290 * kMs;
  program.RunFor({.gpu_ns = kGpu}, 20 * kNanosPerSecond);
  program.RunFor({.behind_stranger_ns = 200 * kMs, .gpu_ns = kGpu}, 10 * kNanosPerSecond);
  program.RunFor({.blocked_io_ns = 200 * kMs, .gpu_ns = kGpu}, 10 * kNanosPerSecond);
  EXPECT_THAT(Causes(program.Reports({.gpu_ns = kGpu})), ElementsAre("cpu_contention", "block_io"))
      << FormatText(program.diagnosis);
}

TEST(ChainedFaultsTest, TheSameCauseAfterAShortPauseIsTheSameIncident) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor(kContention, 5 * kNanosPerSecond);
  program.RunFor({}, 2 * kNanosPerSecond);
  program.RunFor(kContention, 5 * kNanosPerSecond);
  EXPECT_THAT(Causes(program.Reports()), ElementsAre("cpu_contention")) << FormatText(program.diagnosis);
}

TEST(ChainedFaultsTest, CausesThatTakeTurnsOrGrowAreOneIncident) {
  Disturbed program;
  program.RunFor({}, kSettle);
  for (int i = 0; i < 10; ++i) {
    program.RunFor(kContention, kNanosPerSecond / 2);
    program.RunFor(kDisks, kNanosPerSecond / 2);
  }
  program.RunFor(kBoth, 5 * kNanosPerSecond);
  EXPECT_EQ(Causes(program.Reports()).size(), 1u) << FormatText(program.diagnosis);
}

// Something else slows steps a little, and some of them much: less than an incident needs.
TEST(ChainedFaultsTest, WhatIsLeftOfAnIncidentIsNoOtherOne) {
  Disturbed program;
  program.RunFor({}, kSettle);
  program.RunFor(kDisks, 5 * kNanosPerSecond);
  for (int i = 0; i < 6; ++i) {
    program.RunFor({.behind_stranger_ns = kMs / 2}, 400 * kMs);
    program.RunFor({.behind_stranger_ns = 13 * kMs}, 40 * kMs);
  }
  EXPECT_THAT(Causes(program.Reports()), ElementsAre("block_io")) << FormatText(program.diagnosis);
}

// Contention that delays now this rank, now the other one for which this one then waits.
TEST(ChainedFaultsTest, RanksThatOneDisturbanceDelaysInTurnHaveOneIncident) {
  Disturbed program;
  program.world.AddRank();
  program.RunFor({.rank_runs_ns = kMs}, kSettle);
  program.RunFor({.rank_runs_ns = kMs, .rank_behind_stranger_ns = 20 * kMs}, 5 * kNanosPerSecond);
  program.RunFor({.behind_stranger_ns = 20 * kMs, .rank_runs_ns = kMs}, 5 * kNanosPerSecond);
  EXPECT_EQ(Causes(program.Reports({.rank_runs_ns = kMs})).size(), 1u) << FormatText(program.diagnosis);
}

}  // namespace
}  // namespace gpusonde::diagnose
