// SPDX-License-Identifier: Apache-2.0
#include "diagnose/situation_builder.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kOnset = kBegin + 20 * kNanosPerSecond;

// A program whose clean steps run for 30 ms, and some of whose steps are slow.
struct SituationBuilderTest : testing::Test {
  SituationBuilderTest() {
    program.process = {7, 1};
    program.family = {{7, 1}, loader};
    actors.Ingest(model::Process{
        .process = stranger, .pid = 99, .parent_pid = 20, .name = "stress", .cgroup = "/batch"});
    actors.Ingest(model::Process{.process = rank, .pid = 30, .parent_pid = 20, .name = "train"});
    for (int i = 0; i < 100; ++i) AddClean(Step(State::kCpu, 30e6));
  }
  static AccountedStep Step(State state, double ns) {
    AccountedStep accounted{.step = {.type = {1, 1}, .start_ns = kBegin, .end_ns = kBegin + 100 * kMs}};
    accounted.path.states[state] = ns;
    return accounted;
  }
  void AddClean(AccountedStep step) {
    step.path.loaders[State::kLoader] = 20e6;
    step.path.behind[stranger] = 1e6;
    baseline.Add(step);
  }
  AccountedStep SlowStep(State state, double ns) const {
    AccountedStep accounted = Step(State::kCpu, 30e6);
    accounted.path.states[state] += ns;
    accounted.path.loaders[State::kLoader] = 20e6;
    return accounted;
  }
  Situation Build() const {
    return BuildSituation(incident, {program, devices, baseline, host, actors, last_reports, gpu_time});
  }

  const Id128 loader{7, 2}, stranger{7, 3}, rank{7, 4};
  Program program;
  std::set<Id128> devices;
  CleanBaseline baseline;
  HostTimeline host;
  Actors actors;
  std::map<Id128, LastReport> last_reports;
  GpuTimeByName gpu_time;
  IncidentView incident{.onset_ns = kOnset, .until_ns = kOnset + kNanosPerSecond, .last_work_ns = kOnset};
};

TEST_F(SituationBuilderTest, AccountsAreMeansPerStep) {
  for (const double ns : {40e6, 50e6}) {
    AccountedStep slow = SlowStep(State::kRunQueue, ns);
    slow.path.behind[stranger] = ns;
    incident.slow.Add(slow);
  }
  const Situation situation = Build();
  EXPECT_NEAR(situation.before[State::kCpu], 30e6, 1);
  EXPECT_NEAR(situation.during[State::kCpu], 30e6, 1);
  EXPECT_NEAR(situation.during[State::kRunQueue], 45e6, 1);
  EXPECT_NEAR(situation.slowdown, 75.0 / 30, 1e-9);
  const Actor actor{.name = "stress", .cgroup = "/batch"};
  EXPECT_NEAR(situation.cpu_before.at(actor), 1e6, 1);
  EXPECT_NEAR(situation.cpu_during.at(actor), 45e6, 1);
  EXPECT_FALSE(situation.unfinished);
}

TEST_F(SituationBuilderTest, GpuTimePerStepIsThatOfTheKernelsThatHaveGrown) {
  baseline.SetCalm(kOnset, 0);
  const auto run = [&](std::string_view name, int64_t from_ns, int64_t to_ns, int64_t every_ns,
                       int64_t length_ns) {
    std::vector<WorkTime> times;
    for (int64_t end_ns = from_ns; end_ns < to_ns; end_ns += every_ns) times.push_back({end_ns, length_ns});
    gpu_time.Ingest({.kind = Work::Kind::kKernel, .name = name}, times);
  };
  run("gemm", kBegin, kOnset, 30 * kMs, 3 * kMs);
  run("relu", kBegin, kOnset, 30 * kMs, 2 * kMs);
  run("gemm", kOnset, kOnset + kNanosPerSecond, 60 * kMs, 33 * kMs);
  run("relu", kOnset, kOnset + kNanosPerSecond, 60 * kMs, kMs);
  for (int i = 0; i < 16; ++i) incident.slow.Add(SlowStep(State::kGpuRun, 30e6));
  const Situation situation = Build();
  ASSERT_EQ(situation.gpu_time.size(), 1u) << "relu has not grown";
  EXPECT_NEAR(*situation.gpu_time.at("gemm").before, 3e6, 0.2e6);
  EXPECT_NEAR(*situation.gpu_time.at("gemm").during, 33e6, 2e6);
}

TEST_F(SituationBuilderTest, AnUnfinishedStepCountsAsAStepOfTheTypeBefore) {
  incident.slow.Add(SlowStep(State::kWaiting, 10e6));
  incident.unfinished.emplace();
  incident.unfinished->type = {1, 1};
  incident.unfinished->path.states[State::kWaiting] = 500e6;
  const Situation situation = Build();
  EXPECT_TRUE(situation.unfinished);
  EXPECT_NEAR(situation.before.total(), 30e6, 1);
  EXPECT_NEAR(situation.during.total(), (40e6 + 500e6) / 2, 1);
  EXPECT_NEAR(situation.idle_ns, 500e6, 1) << "the longest, not the mean";
  EXPECT_EQ(situation.silent_ns, kNanosPerSecond);
}

TEST_F(SituationBuilderTest, WithoutCleanStepsTheDetectedSlowdownIsKept) {
  baseline.Clear();
  incident.slowdown = 1.7;
  incident.slow.Add(SlowStep(State::kCpu, 10e6));
  EXPECT_EQ(Build().slowdown, 1.7);
}

// The path now waits for the loader's 20 ms that GPU work hid before, because another program delays it by
// 35 ms.
TEST_F(SituationBuilderTest, ALoaderThatRunsNoLongerPassesOnWhatDelaysIt) {
  AccountedStep slow = SlowStep(State::kLoader, 20e6);
  slow.path.states[State::kRunQueue] = 15e6;
  slow.path.loaders[State::kRunQueue] = 35e6;
  slow.path.loaders_behind[stranger] = 35e6;
  slow.path.behind[stranger] = 15e6;
  incident.slow.Add(slow);
  const Situation situation = Build();
  EXPECT_NEAR(situation.during[State::kLoader], 0, 1);
  EXPECT_NEAR(situation.during[State::kRunQueue], 35e6, 1);
  EXPECT_NEAR(situation.during.total(), 65e6, 1) << "time is moved, not added";
  EXPECT_NEAR(situation.cpu_during.at({.name = "stress", .cgroup = "/batch"}), 35e6, 1);
  EXPECT_NEAR(situation.loader_cpu_during, 20e6, 1);
}

TEST_F(SituationBuilderTest, ALoaderThatRunsLongerKeepsItsTime) {
  AccountedStep slow = SlowStep(State::kLoader, 20e6);
  slow.path.loaders[State::kLoader] = 40e6;
  slow.path.loaders[State::kRunQueue] = 35e6;
  incident.slow.Add(slow);
  EXPECT_NEAR(Build().during[State::kLoader], 20e6, 1);
}

TEST_F(SituationBuilderTest, ARankComesWithTheCauseOfItsOpenIncident) {
  AccountedStep slow = SlowStep(State::kPeer, 40e6);
  slow.path.ranks[rank].states[State::kRunQueue] = 30e6;
  slow.path.ranks[rank].idle = 10e6;
  slow.path.ranks[rank].behind[stranger] = 30e6;
  incident.slow.Add(slow);
  last_reports[rank] = {.cause = CauseId::kCpuContention, .because = "it waited", .end_ns = std::nullopt};
  const auto part = [&] { return Build().ranks.at(0); };
  EXPECT_EQ(part().name, "train (process 30)");
  EXPECT_NEAR(part().rise(), 30e6, 1);
  EXPECT_NEAR(part().idle_rise(), 10e6, 1);
  EXPECT_EQ(part().cpu_during.size(), 1u);
  EXPECT_EQ(part().cause, CauseId::kCpuContention);
  EXPECT_EQ(part().because, "it waited");
  last_reports[rank].end_ns = kOnset - 1;
  EXPECT_EQ(part().cause, std::nullopt) << "its incident was over";
}

// Ranks of OpenMPI poll: the one that isn't stopped runs until the other one comes.
TEST_F(SituationBuilderTest, CpuTimeIsAWaitForTheRankThatIsSlowInTheSameSteps) {
  actors.Ingest(model::Process{.process = {7, 1}, .pid = 29, .parent_pid = 20, .name = "train"});
  incident.slow.Add(SlowStep(State::kCpu, 60e6));
  const LastReport stopped{
      .cause = CauseId::kStopped, .because = "it was stopped", .onset_ns = kOnset, .step_ns = 92e6};
  const auto polled_ns = [&](const Id128& who, const LastReport& report) {
    last_reports = {{who, report}};
    const Situation situation = Build();
    EXPECT_NEAR(situation.during.total(), 90e6, 1) << "time is moved, not added";
    return situation.during[State::kPeer];
  };
  EXPECT_NEAR(polled_ns(rank, stopped), 60e6, 1);
  const RankPart part = Build().ranks.at(0);
  EXPECT_EQ(part.name, "train (process 30)");
  EXPECT_NEAR(part.rise(), 60e6, 1);
  EXPECT_EQ(part.cause, CauseId::kStopped);
  EXPECT_EQ(MainActivity(part), nullptr) << "its own incident says what it did";

  const auto with = [&](auto LastReport::* field, auto value) {
    LastReport report = stopped;
    report.*field = value;
    return report;
  };
  EXPECT_EQ(polled_ns(rank, with(&LastReport::cause, CauseId::kMoreCpuWork)), 0) << "it polls as well";
  EXPECT_EQ(polled_ns(rank, with(&LastReport::cause, CauseId::kStraggler)), 0) << "it waits for this one";
  EXPECT_EQ(polled_ns(rank, with(&LastReport::step_ns, 70e6)), 0) << "its steps are others";
  EXPECT_EQ(polled_ns(rank, with(&LastReport::onset_ns, kOnset + 3 * kNanosPerSecond)), 0) << "it came later";
  EXPECT_EQ(polled_ns(rank, with(&LastReport::end_ns, kOnset)), 0) << "its incident was over";
  EXPECT_EQ(polled_ns(stranger, stopped), 0) << "another program";

  const Id128 third{7, 5};
  actors.Ingest(model::Process{.process = third, .pid = 31, .parent_pid = 20, .name = "train"});
  last_reports = {{rank, stopped}, {third, with(&LastReport::cause, CauseId::kCpuContention)}};
  last_reports[third].step_ns = 90e6;
  EXPECT_EQ(Build().ranks.at(0).name, "train (process 30)") << "it doesn't compete with those that poll";

  last_reports.erase(rank);
  EXPECT_EQ(Build().ranks.at(0).name, "train (process 31)");
  incident.slow = {};
  AccountedStep contended = SlowStep(State::kCpu, 35e6);
  contended.path.states[State::kRunQueue] = 25e6;
  incident.slow.Add(contended);
  EXPECT_TRUE(Build().ranks.empty()) << "both have the same cause";
}

TEST_F(SituationBuilderTest, HostSignalsAreComparedWithTheCalmPeriod) {
  baseline.SetCalm(kOnset, 0);
  const auto press = [&](int64_t from_ns, int64_t length_ns, double share) {
    host.Ingest(model::Signal{.start_ns = from_ns,
                              .bucket_ns = length_ns,
                              .metric = "host.pressure.cpu",
                              .values = {static_cast<int64_t>(share * static_cast<double>(length_ns))}});
  };
  press(kBegin, kOnset - kBegin, 0.1);
  press(kOnset, kNanosPerSecond, 0.6);
  incident.slow.Add(SlowStep(State::kRunQueue, 40e6));
  const Change change = Build().Of(model::Metric::kHostPressureCpu);
  ASSERT_TRUE(change.known());
  EXPECT_NEAR(*change.before, 0.1, 1e-6);
  EXPECT_NEAR(*change.during, 0.6, 1e-6);
}

}  // namespace
}  // namespace gpusonde::diagnose
