// SPDX-License-Identifier: Apache-2.0
// Programs that end, restart, or are many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "diagnose/diagnosis.h"
#include "diagnose/testing/world.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;

struct ProgramsTest : testing::Test {
  Diagnosis diagnosis{{}};
  World world{diagnosis};
};

TEST_F(ProgramsTest, AnIncidentEndsWithItsProgram) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 40 * kMs}, 60);
  const int64_t exited_ns = world.now_ns();
  world.AddProcess(world.workload, 11, 1, "train", "/train.slice", exited_ns);
  world.Wait(3 * kNanosPerSecond);
  auto reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.end_ns, exited_ns);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
  EXPECT_EQ(diagnosis.programs(), 1u);
  world.Wait(200 * kNanosPerSecond);
  EXPECT_EQ(diagnosis.programs(), 0u) << "nothing more will arrive for it";
  reports = world.Finish();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].process_name, "train");
  ASSERT_EQ(diagnosis.FoundSteps().size(), 1u);
  EXPECT_EQ(diagnosis.FoundSteps().front().process_name, "train");
}

// It began on a busy machine.
TEST_F(ProgramsTest, ADisturbanceFromTheBeginningHidesNoLaterOne) {
  world.Run({.behind_stranger_ns = 30 * kMs}, 150);
  world.Run({}, 250);
  world.Run({.behind_stranger_ns = 30 * kMs}, 60);
  const auto reports = world.Finish();
  ASSERT_EQ(reports.size(), 2u);
  for (const Report& report : reports) {
    EXPECT_EQ(report.incident.cause, "cpu_contention");
    EXPECT_NEAR(report.incident.slowdown, 2, 0.1);
  }
  EXPECT_THAT(reports[1].incident.sentence, HasSubstr("50 % of the time (0 % before)"));
}

TEST_F(ProgramsTest, WorkOfItsOwnThatComesBackIsNoIncident) {
  world.Run({.cpu_ns = 40 * kMs}, 150);
  world.Run({}, 100);
  world.Run({.cpu_ns = 40 * kMs}, 60);
  EXPECT_TRUE(world.Finish().empty());
}

TEST_F(ProgramsTest, AbandonEndsOpenIncidents) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 40 * kMs}, 60);
  diagnosis.Abandon(world.now_ns());
  const auto reports = diagnosis.Reports();
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].incident.end_ns, world.now_ns());
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
}

// The agent restarts during an incident: the next one ingests the same rows, and the incident reported
// before.
TEST_F(ProgramsTest, AnIncidentContinuesInTheNextDiagnosis) {
  world.Run({}, 150);
  world.Run({.behind_stranger_ns = 40 * kMs}, 60);
  ASSERT_EQ(diagnosis.Reports().size(), 1u);
  model::Incident earlier = diagnosis.Reports()[0].incident;
  earlier.start_ns += 70 * kMs;  // a step later
  std::vector<std::string> reported;
  Diagnosis next{{.report = [&](const Report& report) { reported.push_back(report.incident.cause); }}};
  next.Ingest(earlier);
  World again(next);
  again.Run({}, 150);
  again.Run({.behind_stranger_ns = 40 * kMs}, 60);
  ASSERT_EQ(next.Reports().size(), 1u);
  const model::Incident open = next.Reports()[0].incident;
  EXPECT_EQ(open.incident, earlier.incident);
  EXPECT_EQ(open.start_ns, earlier.start_ns);
  EXPECT_EQ(open.seen_ns, earlier.seen_ns);
  EXPECT_EQ(open.end_ns, std::nullopt);
  EXPECT_TRUE(reported.empty()) << "the earlier run reported it";
  again.Run({}, 200);
  EXPECT_EQ(next.Reports()[0].incident.incident, earlier.incident);
  EXPECT_TRUE(next.Reports()[0].incident.end_ns.has_value());
  EXPECT_EQ(reported, std::vector<std::string>{"cpu_contention"}) << "its end is reported";
  // The next incident is a new one.
  again.Run({.behind_stranger_ns = 40 * kMs}, 60);
  ASSERT_EQ(next.Reports().size(), 2u);
  EXPECT_NE(next.Reports()[1].incident.incident, earlier.incident);
}

// Of many programs on one GPU, exactly the disturbed ones are slow.
TEST_F(ProgramsTest, AHundredProgramsOnOneGpuAreDiagnosedSeparately) {
  constexpr int32_t kPrograms = 100;
  constexpr int64_t kStepNs = 30 * kMs;
  const Id128 stranger{1, 3}, device{2, 1};
  Diagnosis crowd{{}};
  const auto id = [](int32_t i) { return Id128{9, static_cast<uint64_t>(i) + 1}; };
  const auto add_process = [&](const Id128& process, int32_t pid, const std::string& name) {
    crowd.Ingest(model::Process{.process = process, .pid = pid, .name = name, .cgroup = "/" + name});
  };
  add_process(stranger, 99, "stress");
  for (int32_t i = 0; i < kPrograms; ++i) {
    add_process(id(i), 1000 + i, "train");
    crowd.Ingest(model::GpuSession{.process = id(i), .session = 1, .start_ns = kBegin});
    crowd.Ingest(model::ApiCall{.process = id(i), .tid = 1000 + i});
  }
  const auto disturbed = [](int32_t i) { return i % 10 == 3; };
  std::vector<int64_t> now_ns(kPrograms, kBegin);
  const auto signal = [&](int32_t i, const char* metric, int64_t ns, std::optional<Id128> other) {
    crowd.Ingest(model::Signal{.start_ns = now_ns[i],
                               .bucket_ns = ns,
                               .metric = metric,
                               .process = id(i),
                               .tid = 1000 + i,
                               .other = other,
                               .values = {ns}});
    now_ns[i] += ns;
  };
  for (int64_t until_ns = kBegin; until_ns < kBegin + 12 * kNanosPerSecond; until_ns += kNanosPerSecond / 4) {
    for (int32_t i = 0; i < kPrograms; ++i)
      while (now_ns[i] < until_ns) {
        signal(i, "thread.running", 10 * kMs, std::nullopt);
        if (disturbed(i) && now_ns[i] > kBegin + 8 * kNanosPerSecond)
          signal(i, "thread.run_queue", kStepNs, stranger);
        const int64_t sync_ns = now_ns[i];
        signal(i, "thread.sleeping", 20 * kMs + now_ns[i] / kMs % 7 * kMs / 10, std::nullopt);
        crowd.Ingest(model::Kernel{
            .process = id(i), .device = device, .start_ns = sync_ns, .end_ns = now_ns[i], .name = "gemm"});
        crowd.Ingest(model::Sync{
            .process = id(i), .device = device, .start_ns = sync_ns, .end_ns = now_ns[i], .kind = "stream"});
      }
    crowd.Advance(until_ns);
  }
  crowd.Finish(kBegin + 12 * kNanosPerSecond);
  EXPECT_EQ(crowd.FoundSteps().size(), static_cast<size_t>(kPrograms));
  const auto reports = crowd.Reports();
  EXPECT_EQ(reports.size(), 10u);
  for (const Report& report : reports) {
    EXPECT_TRUE(disturbed(report.pid - 1000)) << report.pid;
    EXPECT_EQ(report.incident.cause, "cpu_contention") << report.incident.sentence;
    EXPECT_THAT(report.incident.sentence, HasSubstr("taken by stress"));
  }
}

TEST_F(ProgramsTest, ShortLivedProgramsAreDropped) {
  for (int32_t i = 0; i < 1000; ++i) {
    const Id128 id{7, static_cast<uint64_t>(i) + 1};
    world.AddProcess(id, 1000 + i, 1, "short", "/", world.now_ns() + kMs);
    diagnosis.Ingest(model::Kernel{
        .process = id, .start_ns = world.now_ns(), .end_ns = world.now_ns() + kMs, .name = "k"});
    world.Wait(kNanosPerSecond);
  }
  EXPECT_LT(diagnosis.programs(), 200u);
}

}  // namespace
}  // namespace gpusonde::diagnose
