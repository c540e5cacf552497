// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagnose/diagnosis.h"
#include "diagnose/print.h"
#include "diagnose/testing/world.h"

// Programs that were disturbed already when they were first observed.
namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;

// Steps take 30 ms, and 50 ms while they wait for a CPU.
constexpr World::Step kQueueing{.behind_stranger_ns = 20 * kMs};

struct Watched {
  int64_t RunFor(const World::Step& step, int64_t ns) {
    for (const int64_t until_ns = world.now_ns() + ns; world.now_ns() < until_ns;) world.Run(step, 1);
    return world.now_ns();
  }

  Diagnosis diagnosis{{}};
  World world{diagnosis};
};

TEST(EndedDisturbanceTest, IsAnIncidentFromWhereObservationBegan) {
  for (const int64_t lasted_ns : {4 * kNanosPerSecond, 60 * kNanosPerSecond}) {
    Watched program;
    const int64_t over_ns = program.RunFor(kQueueing, lasted_ns);
    program.RunFor({}, 12 * kNanosPerSecond);
    const std::vector<Report> reports = program.world.Finish();
    ASSERT_EQ(reports.size(), 1u) << FormatText(program.diagnosis);
    const model::Incident& incident = reports.front().incident;
    EXPECT_EQ(incident.cause, "cpu_contention");
    EXPECT_NEAR(incident.slowdown, 50.0 / 30, 0.05);
    EXPECT_NEAR(static_cast<double>(incident.start_ns - kBegin) / kNanosPerSecond, 0, 1);
    EXPECT_NEAR(static_cast<double>(incident.end_ns.value_or(0) - over_ns) / kMs, 0, 75);
    EXPECT_FALSE(incident.withdrawn);
    EXPECT_THAT(incident.sentence, HasSubstr("stress"));
    EXPECT_THAT(incident.sentence, HasSubstr("\"before\" is since it ended"));
  }
}

TEST(EndedDisturbanceTest, TheNextOneOfItsSizeIsSeen) {
  Watched program;
  program.RunFor(kQueueing, 8 * kNanosPerSecond);
  program.RunFor({}, 12 * kNanosPerSecond);
  const int64_t second_ns = program.world.now_ns();
  program.RunFor(kQueueing, 4 * kNanosPerSecond);
  program.RunFor({}, 8 * kNanosPerSecond);
  const std::vector<Report> reports = program.world.Finish();
  ASSERT_EQ(reports.size(), 2u) << FormatText(program.diagnosis);
  EXPECT_NEAR(static_cast<double>(reports[1].incident.start_ns - second_ns) / kMs, 0, 75);
  EXPECT_EQ(reports[1].incident.cause, "cpu_contention");
}

TEST(EndedDisturbanceTest, OneThatBeganWhileItWasWatchedIsToldOnce) {
  Watched program;
  program.RunFor({}, 12 * kNanosPerSecond);
  program.RunFor(kQueueing, 8 * kNanosPerSecond);
  program.RunFor({}, 12 * kNanosPerSecond);
  EXPECT_EQ(program.world.Finish().size(), 1u) << FormatText(program.diagnosis);
}

// Its GPU work takes longer while another program uses the GPU.
TEST(EndedDisturbanceTest, ANeighbourOnTheGpuThatLeavesWasADisturbance) {
  Watched program;
  const auto run = [&](int64_t gpu_ns, double neighbour, int seconds) {
    for (int i = 0; i < seconds; ++i) {
      program.world.Gauge("gpu.process.utilization", neighbour, program.world.stranger);
      program.world.Gauge("gpu.clock.sm", 1980);
      program.RunFor({.gpu_ns = gpu_ns}, kNanosPerSecond);
    }
  };
  run(40 * kMs, 45, 20);
  const int64_t over_ns = program.world.now_ns();
  run(20 * kMs, 0, 20);
  const std::vector<Report> reports = program.world.Finish();
  ASSERT_EQ(reports.size(), 1u) << FormatText(program.diagnosis);
  EXPECT_EQ(reports[0].incident.cause, "gpu_neighbour") << reports[0].incident.sentence;
  EXPECT_NEAR(reports[0].incident.slowdown, 50.0 / 30, 0.05);
  EXPECT_NEAR(static_cast<double>(reports[0].incident.start_ns - kBegin) / kNanosPerSecond, 0, 2);
  EXPECT_NEAR(static_cast<double>(reports[0].incident.end_ns.value_or(0) - over_ns) / kMs, 0, 75);
}

// It reads less, say: nobody disturbed it.
TEST(EndedDisturbanceTest, AProgramThatGotFasterByItselfWasNotDisturbed) {
  Watched program;
  program.RunFor({.cpu_ns = 30 * kMs}, 20 * kNanosPerSecond);
  program.RunFor({}, 20 * kNanosPerSecond);
  EXPECT_TRUE(program.world.Finish().empty()) << FormatText(program.diagnosis);
}

}  // namespace
}  // namespace gpusonde::diagnose
