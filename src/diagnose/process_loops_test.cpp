// SPDX-License-Identifier: Apache-2.0
// Processes that run several loops at a time, through the whole diagnosis.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/diagnosis.h"
#include "diagnose/print.h"
#include "diagnose/testing/times.h"
#include "model/batch_rows.h"
#include "model/tables/usual_steps.h"

namespace gpusonde::diagnose {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// A thread that computes, launches kernels to its stream and waits for them.
struct LoopThread {
  int32_t tid;
  int64_t stream;
  int64_t cpu_ns, gpu_ns;
  std::string kernel;
  int64_t begins_ns = 0;             // after the process
  int64_t slow_from_ns = INT64_MAX;  // from then on a stranger takes its CPU for three times as long
  int64_t now_ns = kBegin;
  int64_t steps = 0;
};

struct ProcessLoopsTest : testing::Test {
  ProcessLoopsTest() {
    diagnosis.Ingest(model::Process{.process = process, .pid = 11, .name = "learn", .cgroup = "/learn"});
    diagnosis.Ingest(model::Process{.process = stranger, .pid = 99, .name = "stress", .cgroup = "/batch"});
    diagnosis.Ingest(model::GpuSession{.process = process, .session = 1, .start_ns = kBegin});
  }

  void Signal(const LoopThread& loop, const char* metric, int64_t ns, std::optional<Id128> other) {
    diagnosis.Ingest(model::Signal{.start_ns = loop.now_ns,
                                   .bucket_ns = ns,
                                   .metric = metric,
                                   .process = process,
                                   .tid = loop.tid,
                                   .other = other,
                                   .values = {ns}});
  }

  void Step(LoopThread& loop) {
    const auto spend = [&](const char* metric, int64_t ns, std::optional<Id128> other) {
      Signal(loop, metric, ns, other);
      loop.now_ns += ns;
    };
    spend("thread.running", loop.cpu_ns + loop.steps++ % 7 * loop.cpu_ns / 100, std::nullopt);
    if (loop.now_ns >= loop.slow_from_ns)
      spend("thread.run_queue", 2 * (loop.cpu_ns + loop.gpu_ns), stranger);
    const int64_t correlation = ++correlation_;
    if (calls)
      diagnosis.Ingest(model::ApiCall{.process = process,
                                      .tid = loop.tid,
                                      .session = 1,
                                      .correlation = correlation,
                                      .start_ns = loop.now_ns});
    const int64_t launched_ns = loop.now_ns;
    spend("thread.sleeping", loop.gpu_ns, std::nullopt);
    diagnosis.Ingest(model::Kernel{.process = process,
                                   .device = device,
                                   .session = 1,
                                   .correlation = correlation,
                                   .stream = loop.stream,
                                   .start_ns = launched_ns,
                                   .end_ns = loop.now_ns,
                                   .name = loop.kernel});
    diagnosis.Ingest(model::Sync{.process = process,
                                 .device = device,
                                 .session = 1,
                                 .correlation = ++correlation_,
                                 .stream = loop.stream,
                                 .start_ns = launched_ns,
                                 .end_ns = loop.now_ns,
                                 .kind = "stream"});
  }

  // Runs the loops at the same time.
  void Run(std::vector<LoopThread> loops, int64_t for_ns) {
    for (LoopThread& loop : loops) {
      loop.now_ns += loop.begins_ns;
      if (loop.slow_from_ns != INT64_MAX) loop.slow_from_ns += kBegin;
    }
    for (int64_t until_ns = kBegin; until_ns < kBegin + for_ns; until_ns += kNanosPerSecond / 4) {
      for (LoopThread& loop : loops)
        while (loop.now_ns < until_ns) Step(loop);
      diagnosis.Advance(until_ns);
    }
    diagnosis.Finish(kBegin + for_ns);
  }

  Diagnosis diagnosis{{}};
  bool calls = true;
  const Id128 process{1, 1}, stranger{1, 3}, device{2, 1};

 private:
  int64_t correlation_ = 0;
};

const LoopThread kLearner{.tid = 11, .stream = 13, .cpu_ns = 20 * kMs, .gpu_ns = 25 * kMs, .kernel = "learn"};
const LoopThread kActor{.tid = 12, .stream = 14, .cpu_ns = 4 * kMs, .gpu_ns = 3 * kMs, .kernel = "act"};

TEST_F(ProcessLoopsTest, EachLoopHasStepsOfItsOwn) {
  Run({kLearner, kActor}, 20 * kNanosPerSecond);
  const std::vector<Diagnosis::Found> found = diagnosis.FoundSteps();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[0].tid, 0);
  EXPECT_EQ(found[1].tid, kActor.tid);
  EXPECT_NEAR(static_cast<double>(found[0].steps), 19'750.0 / 45.6, 5) << "those before it was known, too";
  EXPECT_NEAR(static_cast<double>(found[1].steps), 19'750.0 / 7.12, 5);
  EXPECT_NEAR(found[1].usual.states.total(), 7.12 * kMs, 0.1 * kMs);
  EXPECT_THAT(diagnosis.Reports(), IsEmpty());
  EXPECT_THAT(FormatText(diagnosis), HasSubstr("learn (process 11, thread 12): 2"));
}

TEST_F(ProcessLoopsTest, ASlowLoopIsAnIncidentOfThatLoopAlone) {
  LoopThread slow = kActor;
  slow.slow_from_ns = 12 * kNanosPerSecond;
  Run({kLearner, slow}, 20 * kNanosPerSecond);
  const std::vector<Report> reports = diagnosis.Reports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].incident.tid, kActor.tid);
  EXPECT_NEAR(reports[0].incident.slowdown, 3, 0.1);
  EXPECT_EQ(reports[0].incident.cause, "cpu_contention");
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("Steps of thread 12 slowed 3.0× from"));
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("taken by stress"));
}

TEST_F(ProcessLoopsTest, ASlowFirstLoopIsTheProcesss) {
  LoopThread slow = kLearner;
  slow.slow_from_ns = 12 * kNanosPerSecond;
  Run({slow, kActor}, 20 * kNanosPerSecond);
  const std::vector<Report> reports = diagnosis.Reports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].incident.tid, 0);
  EXPECT_NEAR(reports[0].incident.slowdown, 3, 0.1);
  EXPECT_THAT(reports[0].incident.sentence, HasSubstr("Steps slowed 3.0× from"));
}

TEST_F(ProcessLoopsTest, ALoopThatBeginsLaterIsFoundThen) {
  LoopThread late = kActor;
  late.begins_ns = 10 * kNanosPerSecond;
  late.slow_from_ns = 25 * kNanosPerSecond;
  Run({kLearner, late}, 30 * kNanosPerSecond);
  const std::vector<Diagnosis::Found> found = diagnosis.FoundSteps();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_EQ(found[1].tid, kActor.tid);
  const std::vector<Report> reports = diagnosis.Reports();
  ASSERT_THAT(reports, SizeIs(1)) << reports.front().incident.sentence;
  EXPECT_EQ(reports[0].incident.tid, kActor.tid);
  EXPECT_NEAR(reports[0].incident.slowdown, 3, 0.1);
}

TEST_F(ProcessLoopsTest, TheFirstLoopStaysTheFirstWhateverThreadsComeLater) {
  LoopThread late = kActor;
  late.tid = kLearner.tid - 1;
  late.begins_ns = 10 * kNanosPerSecond;
  Run({kLearner, late}, 30 * kNanosPerSecond);
  const std::vector<Diagnosis::Found> found = diagnosis.FoundSteps();
  ASSERT_THAT(found, SizeIs(2));
  EXPECT_NEAR(found[0].usual.states.total(), 45.6 * kMs, 0.5 * kMs);
  EXPECT_EQ(found[1].tid, late.tid);
}

TEST_F(ProcessLoopsTest, WithoutKnownThreadsThereIsOneLoop) {
  calls = false;
  Run({kLearner, kActor}, 20 * kNanosPerSecond);
  const std::vector<Diagnosis::Found> found = diagnosis.FoundSteps();
  ASSERT_THAT(found, SizeIs(1));
  EXPECT_GT(found[0].steps, 3000) << "each wait ends one";
}

TEST_F(ProcessLoopsTest, RowsSayWhoseStepsTheyAre) {
  LoopThread slow = kActor;
  slow.slow_from_ns = 12 * kNanosPerSecond;
  Run({kLearner, slow}, 20 * kNanosPerSecond);
  std::set<int32_t> of_steps, of_usual, of_incidents;
  for (const model::Batch& batch : diagnosis.DrainRows()) {
    if (batch.table == model::kSteps.name())
      for (const auto& row : model::RowsOf(model::kSteps, batch)) of_steps.insert(row.tid);
    if (batch.table == model::kUsualSteps.name())
      for (const auto& row : model::RowsOf(model::kUsualSteps, batch)) of_usual.insert(row.tid);
    if (batch.table == model::kIncidents.name())
      for (const auto& row : model::RowsOf(model::kIncidents, batch)) of_incidents.insert(row.tid);
  }
  EXPECT_THAT(of_steps, ElementsAre(0, 12));
  EXPECT_THAT(of_usual, ElementsAre(0, 12));
  EXPECT_THAT(of_incidents, ElementsAre(12));
}

TEST_F(ProcessLoopsTest, AnIncidentOfALoopContinuesThatOfAnEarlierRun) {
  LoopThread slow = kActor;
  slow.slow_from_ns = 12 * kNanosPerSecond;
  const int64_t onset_ns = kBegin + 12 * kNanosPerSecond;
  const model::Incident of_actor{.incident = {8, 1}, .process = process, .tid = 12, .start_ns = onset_ns};
  const model::Incident of_learner{.incident = {8, 2}, .process = process, .tid = 0, .start_ns = onset_ns};
  diagnosis.Ingest(of_learner);
  diagnosis.Ingest(of_actor);
  Run({kLearner, slow}, 20 * kNanosPerSecond);
  const std::vector<Report> reports = diagnosis.Reports();
  ASSERT_THAT(reports, SizeIs(1));
  EXPECT_EQ(reports[0].incident.incident, of_actor.incident);
}

}  // namespace
}  // namespace gpusonde::diagnose
