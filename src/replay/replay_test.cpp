// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.h"

#include <gtest/gtest.h>

#include <iterator>
#include <limits>

#include "base/testing/units.h"
#include "model/tables/steps.h"
#include "replay/testing/machine.h"
#include "store/recordings/testing/memory_store.h"
#include "store/table_rows.h"

namespace gpusonde::replay {
namespace {

class ReadSpanTest : public store::MemoryStoreTest {
 protected:
  std::pair<int64_t, int64_t> Span(int64_t since_ns = 0) {
    const TimeRange span = ReadSpan(*store_, since_ns).value();
    return {span.from_ns, span.to_ns};
  }
};

TEST_F(ReadSpanTest, IsEmptyWithoutRows) { EXPECT_EQ(Span(), std::pair(0l, 0l)); }

TEST_F(ReadSpanTest, CoversWorkReadingsSignalsAndRuns) {
  Add(model::kKernels, {{.start_ns = 50, .end_ns = 60}});
  EXPECT_EQ(Span(), std::pair(50l, 60l));
  Add(model::kKernelPacks, {{.start_ns = 40, .end_ns = 70, .offsets_ns = {5}, .durations_ns = {25}}});
  EXPECT_EQ(Span(), std::pair(40l, 70l));
  Add(model::kMemcpys, {{.start_ns = 30, .end_ns = 80}});
  EXPECT_EQ(Span(), std::pair(30l, 80l));
  Add(model::kMetrics, {{.time_ns = 20}, {.time_ns = 90}});
  EXPECT_EQ(Span(), std::pair(20l, 90l));
  Add(model::kSignals, {{.start_ns = 10}, {.start_ns = 100}});
  EXPECT_EQ(Span(), std::pair(10l, 100l));
  Add(model::kSources,
      {{.source = {1, 1}, .started_ns = 5}, {.source = {1, 2}, .started_ns = 6, .ended_ns = 110}});
  EXPECT_EQ(Span(), std::pair(5l, 110l));
}

TEST_F(ReadSpanTest, LeavesOutTimesBeforeAndRowsThatEndBeforeTheyStart) {
  Add(model::kKernels,
      {{.start_ns = 10, .end_ns = 20}, {.start_ns = 30, .end_ns = 60}, {.start_ns = 99, .end_ns = 70}});
  Add(model::kMetrics, {{.time_ns = 15}, {.time_ns = 55}});
  Add(model::kSources, {{.source = {1, 1}, .started_ns = 5, .ended_ns = 12}});
  EXPECT_EQ(Span(50), std::pair(55l, 60l)) << "work that runs at that time counts with its end";
  EXPECT_EQ(Span(61), std::pair(0l, 0l));
}

TEST_F(ReadSpanTest, ATraceHasNoSignals) {
  Add(model::kKernels, {{.start_ns = 50, .end_ns = 60}});
  EXPECT_FALSE(HasSignals(*store_).value());
  Add(model::kSignals, {{.start_ns = 10}});
  EXPECT_TRUE(HasSignals(*store_).value());
}

class ReadObservedUntilTest : public store::MemoryStoreTest {};

TEST_F(ReadObservedUntilTest, ARunThatEndedBefore1970SaysNothing) {
  Add(model::kProcesses, {{.process = {2, 1}, .source = {1, 1}}, {.process = {2, 2}, .source = {1, 2}}});
  Add(model::kSources, {{.source = {1, 1}, .boot_id = "a", .ended_ns = std::numeric_limits<int64_t>::min()},
                        {.source = {1, 2}, .boot_id = "b", .ended_ns = 100 * kSecond}});
  const auto observed = ReadObservedUntil(*store_, {0, 200 * kSecond});
  ASSERT_TRUE(observed.has_value()) << observed.error().message;
  EXPECT_EQ(observed->at({2, 1}), 0);
  EXPECT_LT(observed->at({2, 2}), 100 * kSecond) << "less what had not arrived";
  EXPECT_GT(observed->at({2, 2}), 0);
}

class ReplayTest : public store::MemoryStoreTest {
 protected:
  std::vector<diagnose::Report> Replayed() {
    const TimeRange span = ReadSpan(*store_, 0).value();
    diagnose::Diagnosis diagnosis({});
    const Status replayed = Replay(*store_, span, diagnosis);
    EXPECT_TRUE(replayed.has_value()) << replayed.error().message;
    diagnosis.Finish(span.to_ns);
    return diagnosis.Reports();
  }
};

TEST_F(ReplayTest, FindsTheIncidentThatTheAgentFound) {
  Machine machine(*store_);
  machine.StartAgent();
  machine.Train(150);
  machine.Train(60, 40 * kMs);
  machine.Train(200);
  machine.StopAgent();
  ASSERT_EQ(machine.Incidents().size(), 1u);
  const std::vector<diagnose::Report> replayed = Replayed();
  ASSERT_EQ(replayed.size(), 1u);
  EXPECT_EQ(replayed[0].incident.incident, machine.Incidents()[0].incident);
  EXPECT_EQ(replayed[0].incident.end_ns, machine.Incidents()[0].end_ns);
  EXPECT_EQ(replayed[0].incident.cause, machine.Incidents()[0].cause);
}

TEST_F(ReplayTest, ASilenceThatWasObservedIsAnIncident) {
  Machine machine(*store_);
  machine.StartAgent();
  machine.Train(150);
  machine.Wait(60 * kSecond);
  machine.Train(150);
  machine.StopAgent();
  ASSERT_EQ(Replayed().size(), 1u);
  EXPECT_EQ(Replayed()[0].incident.cause, "hang");
}

TEST_F(ReplayTest, ATimeWithoutAnAgentIsNone) {
  for (const bool killed : {false, true}) {
    SetUp();
    Machine machine(*store_);
    machine.StartAgent();
    machine.Train(150);
    killed ? machine.KillAgent() : machine.StopAgent();
    machine.Wait(60 * kSecond);
    machine.StartAgent();
    machine.Train(150);
    machine.StopAgent();
    for (const diagnose::Report& report : Replayed())
      ADD_FAILURE() << (killed ? "killed: " : "stopped: ") << report.incident.sentence;
  }
}

TEST_F(ReplayTest, AProgramThatDiedUnseenDidNotHang) {
  for (const bool just_resumed : {false, true}) {
    SetUp();
    Machine machine(*store_);
    machine.StartAgent();
    machine.Train(150);
    machine.Wait(kSecond);
    // Profiling of its GPU work, which had been paused, resumed shortly before the agent stopped.
    if (just_resumed)
      Add(model::kGpuSessions,
          {{.process = machine.program,
            .session = 1,
            .start_ns = Machine::kBegin,
            .end_ns = machine.now_ns() - kSecond},
           {.process = machine.program, .session = 2, .start_ns = machine.now_ns() - 100 * kMs}});
    machine.StopAgent();
    machine.EndProgram();
    machine.StartAgent();
    machine.Wait(60 * kSecond);
    machine.StopAgent();
    for (const diagnose::Report& report : Replayed()) ADD_FAILURE() << report.incident.sentence;
  }
}

// 25,000 kernels a second: its slices are read in parts, at whose borders no step is lost or cut.
TEST_F(ReplayTest, BusySlicesAreReadInParts) {
  constexpr int64_t kStep = 4 * kMs, kKernels = 100, kSteps = 1'500;
  const Id128 process{1, 1};
  model::BatchBuilder kernels(model::kKernels);
  std::vector<model::Range> ranges;
  for (int64_t step = 0; step < kSteps; ++step) {
    const int64_t begin_ns = Machine::kBegin + step * kStep;
    ranges.push_back(
        {.process = process, .tid = 8, .start_ns = begin_ns, .end_ns = begin_ns + kStep, .name = "step"});
    for (int64_t i = 0; i < kKernels; ++i) {
      const int64_t start_ns = begin_ns + i * kStep / kKernels;
      kernels.Append({.process = process,
                      .device = {2, 1},
                      .start_ns = start_ns,
                      .end_ns = start_ns + 30'000,
                      .name = "gemm"});
    }
  }
  ASSERT_TRUE(store_->Append({{kernels.Take()}}).has_value());
  Add(model::kRanges, ranges);
  Add(model::kProcesses, {{.process = process, .pid = 7, .name = "dense"}});
  Result<diagnose::Diagnosis> diagnosis = Diagnose(*store_, {});
  ASSERT_TRUE(diagnosis.has_value()) << diagnosis.error().message;
  ASSERT_TRUE(store_->Append(diagnosis->DrainRows()).has_value());
  const auto steps = store::ReadTable(*store_, model::kSteps).value();
  EXPECT_GT(std::ssize(steps), kSteps - 10);
  for (const model::Step& step : steps) EXPECT_EQ(step.end_ns - step.start_ns, kStep);
}

// Else it would not end: a century has 300 million slices.
TEST_F(ReplayTest, CenturiesThatARecordingClaimsAreSkipped) {
  Machine machine(*store_);
  machine.StartAgent();
  machine.Train(150);
  machine.Train(60, 40 * kMs);
  machine.KillAgent();
  const int64_t late_ns = 4'000'000'000 * kSecond;
  Add(model::kMemcpys,
      {{.process = machine.program, .start_ns = late_ns, .end_ns = late_ns + 1},
       {.process = machine.program, .start_ns = 4'500'000'000 * kSecond, .end_ns = INT64_MAX}});
  const TimeRange span = ReadSpan(*store_, 0).value();
  EXPECT_EQ(span.to_ns, int64_t{1} << 62);
  const std::vector<diagnose::Report> replayed = Replayed();
  ASSERT_FALSE(replayed.empty());
  EXPECT_EQ(replayed[0].incident.incident, machine.Incidents()[0].incident);
}

}  // namespace
}  // namespace gpusonde::replay
