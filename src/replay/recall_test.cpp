// SPDX-License-Identifier: Apache-2.0
#include "replay/recall.h"

#include <gtest/gtest.h>

#include "model/tables/signals.h"
#include "model/tables/warnings.h"
#include "replay/testing/machine.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::replay {
namespace {

constexpr int64_t kContended = 40 * kMs;

class RecallTest : public store::MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    machine_.emplace(*store_);
  }

  // An agent that has found an incident, which is still open.
  model::Incident BeginIncident() {
    machine_->StartAgent();
    machine_->Train(150);
    machine_->Train(60, kContended);
    const std::vector<model::Incident> incidents = machine_->Incidents();
    EXPECT_EQ(incidents.size(), 1u);
    if (incidents.empty()) return {};
    EXPECT_EQ(incidents[0].cause, "cpu_contention");
    EXPECT_EQ(incidents[0].end_ns, std::nullopt);
    return incidents[0];
  }

  std::optional<Machine> machine_;
};

TEST_F(RecallTest, AnIncidentContinuesUnderItsIdAfterTheAgentWasKilled) {
  const model::Incident before = BeginIncident();
  machine_->KillAgent();
  const int64_t killed_ns = machine_->now_ns();
  machine_->Train(30, kContended);  // while no agent runs

  machine_->StartAgent();
  ASSERT_EQ(machine_->Incidents().size(), 1u);
  EXPECT_EQ(machine_->Incidents()[0].end_ns, std::nullopt) << "the new agent does not close it";
  machine_->Train(60, kContended);
  const int64_t recovered_ns = machine_->now_ns();
  machine_->Train(200);

  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u) << "neither doubled nor lost";
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_EQ(after[0].start_ns, before.start_ns);
  EXPECT_EQ(after[0].seen_ns, before.seen_ns);
  EXPECT_EQ(after[0].cause, "cpu_contention") << after[0].sentence;
  ASSERT_TRUE(after[0].end_ns.has_value());
  EXPECT_GT(*after[0].end_ns, killed_ns);
  EXPECT_NEAR(static_cast<double>(*after[0].end_ns), static_cast<double>(recovered_ns), 200e6);
}

TEST_F(RecallTest, AnIncidentSurvivesTwoKills) {
  const model::Incident before = BeginIncident();
  for (int i = 0; i < 2; ++i) {
    machine_->KillAgent();
    machine_->StartAgent();
    machine_->Train(40, kContended);
  }
  machine_->Train(200);
  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_TRUE(after[0].end_ns.has_value());
}

TEST_F(RecallTest, AnIncidentContinuesAfterTheAgentWasStopped) {
  const model::Incident before = BeginIncident();
  machine_->StopAgent();
  machine_->StartAgent();
  machine_->Train(40, kContended);
  ASSERT_EQ(machine_->Incidents().size(), 1u);
  EXPECT_EQ(machine_->Incidents()[0].incident, before.incident);
  EXPECT_EQ(machine_->Incidents()[0].end_ns, std::nullopt);
}

TEST_F(RecallTest, AnIncidentThatEndedWhileNoAgentRanEnds) {
  const model::Incident before = BeginIncident();
  machine_->KillAgent();
  machine_->Train(100);
  machine_->StartAgent();
  machine_->Train(200);
  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_TRUE(after[0].end_ns.has_value());
}

// Only its last minutes are replayed: they look like those of a program that was disturbed from the
// beginning.
TEST_F(RecallTest, ALongIncidentThatHadEndedIsNotToldAgain) {
  const model::Incident before = BeginIncident();
  machine_->Train(6000, kContended);
  machine_->Train(250);
  machine_->KillAgent();
  machine_->StartAgent();
  machine_->Train(100);
  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_TRUE(after[0].end_ns.has_value());
}

TEST_F(RecallTest, AnIncidentOfAProgramThatEndedWhileNoAgentRanEndsWhenItWasLastObserved) {
  const model::Incident before = BeginIncident();
  machine_->KillAgent();
  const int64_t killed_ns = machine_->now_ns();
  machine_->EndProgram();
  machine_->Wait(60 * kNanosPerSecond);
  machine_->StartAgent();
  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u) << "it did not hang";
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_EQ(after[0].end_ns, killed_ns - Machine::kWakeNs);
}

// Nothing is learnt from rows of two hours ago, so nothing else would ever end it.
TEST_F(RecallTest, AnIncidentOfAForgottenRunIsClosed) {
  const model::Incident before = BeginIncident();
  machine_->KillAgent();
  machine_->Wait(7'200 * kNanosPerSecond);
  machine_->StartAgent();
  const std::vector<model::Incident> after = machine_->Incidents();
  ASSERT_EQ(after.size(), 1u);
  EXPECT_EQ(after[0].incident, before.incident);
  EXPECT_EQ(after[0].end_ns, before.seen_ns);
  machine_->Train(150);
  EXPECT_EQ(machine_->Incidents().size(), 1u);
}

TEST_F(RecallTest, AnIncidentTooOldToReplayIsClosed) {
  const model::Incident old{.incident = {9, 9},
                            .process = machine_->program,
                            .start_ns = Machine::kBegin - 400 * kNanosPerSecond,
                            .cause = "cpu_contention"};
  Add(model::kIncidents, {old});
  machine_->StartAgent();
  machine_->Train(150);
  machine_->KillAgent();
  const int64_t killed_ns = machine_->now_ns();
  EXPECT_EQ(machine_->Incidents()[0].end_ns, old.start_ns) << "closed when the store held nothing else";
  Add(model::kIncidents, {old});  // open again
  machine_->StartAgent();
  ASSERT_EQ(machine_->Incidents().size(), 1u);
  EXPECT_NEAR(static_cast<double>(machine_->Incidents()[0].end_ns.value_or(0)),
              static_cast<double>(killed_ns), 1e8);
}

TEST_F(RecallTest, TheBaselineOfTheRunBeforeIsKnown) {
  machine_->StartAgent();
  machine_->Train(150);
  machine_->KillAgent();
  machine_->StartAgent();
  machine_->Train(30, kContended);  // too few for a baseline of its own
  ASSERT_EQ(machine_->Incidents().size(), 1u);
  EXPECT_GT(machine_->Incidents()[0].slowdown, 1.5);
}

// As while `record` or another agent listens too. The last call that was seen returned after the last kernel
// that was seen.
TEST_F(RecallTest, TimeWithoutAnAgentIsNoStepOfASessionThatWentOn) {
  machine_->LetOthersListen();
  machine_->StartAgent();
  machine_->Train(150);
  machine_->KillAgent();
  machine_->Train(400);
  machine_->StartAgent();
  machine_->Train(200);
  const auto longest = store_->Query("SELECT max(end_ns - start_ns) FROM steps");
  ASSERT_TRUE(longest.has_value() && (*longest)->Next().value());
  EXPECT_EQ((*longest)->Int64(0), 30 * kMs);
}

TEST_F(RecallTest, AWarningThatWasOpenEndsAndWhatLastsIsWarnedOfAnew) {
  machine_->StartAgent();
  machine_->Train(30);
  const int64_t begin_ns = machine_->now_ns() - machine_->now_ns() % kNanosPerSecond;
  machine_->Wait(90 * kNanosPerSecond);
  std::vector<model::Signal> pressure;
  for (int64_t second = 1; second < 90; ++second)
    pressure.push_back({.start_ns = begin_ns + second * kNanosPerSecond,
                        .bucket_ns = kNanosPerSecond,
                        .metric = "host.pressure.memory",
                        .values = {(second < 75 ? 2 : 60) * kNanosPerSecond / 100}});
  Add(model::kSignals, pressure);
  Add(model::kWarnings, {{.warning = {9, 1}, .indicator = "memory_pressure", .start_ns = begin_ns}});
  machine_->KillAgent();
  const int64_t killed_ns = machine_->now_ns();
  machine_->StartAgent();
  const auto warnings = store::ReadTable(*store_, model::kWarnings, "ORDER BY start_ns").value();
  ASSERT_EQ(warnings.size(), 2u);
  EXPECT_NEAR(static_cast<double>(warnings[0].end_ns.value_or(0)), static_cast<double>(killed_ns), 2e9);
  EXPECT_EQ(warnings[1].indicator, "memory_pressure");
  EXPECT_GT(warnings[1].start_ns, begin_ns + 75 * kNanosPerSecond);
  EXPECT_EQ(warnings[1].end_ns, std::nullopt);
  machine_->Wait(120 * kNanosPerSecond);
  const auto later = store::ReadTable(*store_, model::kWarnings, "ORDER BY start_ns").value();
  ASSERT_EQ(later.size(), 2u);
  EXPECT_TRUE(later[1].end_ns.has_value());
}

// Passes queries on until a number of them were made; appends always.
class FailingStore : public store::Store {
 public:
  FailingStore(store::Store& store, int queries) : store_(store), queries_(queries) {}
  Status Append(std::span<const model::Batch> batches) override { return store_.Append(batches); }
  Result<std::unique_ptr<store::Rows>> Query(const std::string& sql,
                                             std::span<const store::Parameter> parameters) override {
    if (queries_-- > 0) return store_.Query(sql, parameters);
    return Fail(ErrorCode::kIo, "the disk is gone");
  }

 private:
  store::Store& store_;
  int queries_;
};

TEST_F(RecallTest, AQueryThatFailsIsReportedAndClosesNoIncident) {
  BeginIncident();
  machine_->KillAgent();
  int queries = 0;
  for (;; ++queries) {
    FailingStore failing(*store_, queries);
    diagnose::Diagnosis diagnosis({});
    const Status recalled =
        Recall(failing, machine_->now_ns(), [](const model::Process&) { return true; }, diagnosis);
    ASSERT_EQ(machine_->Incidents()[0].end_ns, std::nullopt) << "after " << queries << " queries";
    if (recalled.has_value()) break;
    ASSERT_EQ(recalled.error().message, "the disk is gone");
  }
  EXPECT_GT(queries, 10);
}

}  // namespace
}  // namespace gpusonde::replay
