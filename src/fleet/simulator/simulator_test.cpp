// SPDX-License-Identifier: Apache-2.0
#include "fleet/simulator/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

namespace gpusonde::fleet {
namespace {

using testing::HasSubstr;

bool GoOn(std::string_view, double) { return true; }

// Few devices, so that a run takes seconds; all in one list but for the signatures.
Parameters Small() {
  Parameters parameters;
  parameters.devices = 300;
  parameters.applications = 8;
  parameters.unknown_applications = 1;
  parameters.load = 0.4;
  parameters.groups = 1;
  parameters.cohorts = 1;
  parameters.min_reports = 100;
  parameters.cheats = 0;
  parameters.private_queries = 2;
  parameters.threads = 2;
  return parameters;
}

Simulated SimulateWith(const Parameters& parameters) {
  const auto streams = ReadKernelStreams("data/kernel-streams");
  auto simulated = Simulate(parameters, streams.value(), GoOn);
  EXPECT_TRUE(simulated.has_value()) << simulated.error().message;
  return *std::move(simulated);
}

TEST(Simulator, ReleasesAreTheSumOfReportsAndNoise) {
  Parameters parameters = Small();
  parameters.hours = 2;
  const Simulated simulated = SimulateWith(parameters);
  const auto& run = simulated.runs.at(0);
  ASSERT_EQ(run.hours.size(), 2u);
  for (const Hour& hour : run.hours) {
    EXPECT_EQ(hour.verdicts[0], parameters.devices);
    EXPECT_EQ(hour.lists, 2u);
    EXPECT_EQ(hour.lists_refused + hour.lists_too_small + hour.lists_unanswered, 0u);
    EXPECT_NEAR(hour.busy_share, 0.4, 0.1);
  }
  EXPECT_EQ(run.error.slots, 4u * 4096);
  EXPECT_EQ(run.error.largest_before_noise, 0u);
  EXPECT_GT(run.error.largest_deviations, 2.5) << "there is noise";
  EXPECT_LT(run.error.largest_deviations, 6);
  EXPECT_NEAR(run.error.within_two_deviations, 0.954, 0.02);
  EXPECT_EQ(run.budgets.windows, 2u);
  EXPECT_LT(run.budgets.epsilon_window, 1.0);
  EXPECT_EQ(run.identification.private_queries, 4u);
  EXPECT_EQ(run.identification.private_agreed, 4u);
  EXPECT_GT(run.hours.back().sampled_coverage, 0.9);
}

TEST(Simulator, IsTheSameForTheSameSeedWithAnyNumberOfThreads) {
  Parameters parameters = Small();
  parameters.cheats = 3;
  parameters.hours = 2;
  parameters.churn = 0.05;
  const auto without_measured = [](const Simulated& simulated) {
    auto json = nlohmann::json::parse(ToJson(simulated));
    for (auto& run : json["runs"]) run.erase("measured");
    return json.dump();
  };
  const std::string two = without_measured(SimulateWith(parameters));
  parameters.threads = 1;
  EXPECT_EQ(without_measured(SimulateWith(parameters)), two);
  parameters.seed = 2;
  EXPECT_NE(without_measured(SimulateWith(parameters)), two);
}

TEST(Simulator, PenrosesWayGivesTheSameSumsWithoutNoise) {
  Parameters parameters = Small();
  parameters.devices = 120;
  parameters.min_reports = 10;
  parameters.reports = {ReportKind::kMasked, ReportKind::kBfv};
  const Simulated simulated = SimulateWith(parameters);
  ASSERT_EQ(simulated.runs.size(), 2u);
  const auto& masked = simulated.runs[0];
  const auto& bfv = simulated.runs[1];
  EXPECT_EQ(bfv.error.largest_before_noise, 0u);
  EXPECT_EQ(bfv.error.largest_deviations, 0);
  EXPECT_EQ(bfv.hours[0].verdicts[0], masked.hours[0].verdicts[0]);
  EXPECT_EQ(bfv.hours[0].sampled_coverage, masked.hours[0].sampled_coverage);
  EXPECT_GT(bfv.report_bytes, 6 * masked.report_bytes);
}

TEST(Simulator, ADeadDecryptorLosesItsWindowAndNothingElse) {
  Parameters parameters = Small();
  parameters.hours = 3;
  parameters.dead_hour = 1;
  const auto run = SimulateWith(parameters).runs.at(0);
  EXPECT_EQ(run.hours[1].lists_unanswered, run.hours[1].lists);
  EXPECT_EQ(run.hours[0].lists_unanswered + run.hours[2].lists_unanswered, 0u);
  EXPECT_EQ(run.budgets.windows, 2u);
  EXPECT_EQ(run.error.largest_before_noise, 0u);
}

TEST(Simulator, CheatsAreRejectedOrSpoilOnlyTheirCohortAndAreFound) {
  Parameters parameters = Small();
  parameters.devices = 600;
  parameters.groups = 2;
  parameters.cohorts = 4;
  parameters.min_reports = 2;
  parameters.cheats = 3;
  parameters.churn = 0;
  parameters.hours = 7;
  const auto run = SimulateWith(parameters).runs.at(0);
  EXPECT_EQ(run.hours[0].verdicts[static_cast<size_t>(Verdict::kBadSignature)], 1u);
  EXPECT_EQ(run.hours[0].verdicts[static_cast<size_t>(Verdict::kDuplicate)], 1u);
  EXPECT_EQ(run.hours[0].lists_refused, 1u);
  uint64_t expelled = 0;
  for (const Hour& hour : run.hours) {
    expelled += hour.expelled;
    EXPECT_EQ(hour.expelled_honest, 0u);
  }
  EXPECT_EQ(expelled, 1u);
  EXPECT_EQ(run.hours.back().lists_refused, 0u) << "nobody spoils sums any more";
  EXPECT_EQ(run.hours.back().verdicts[static_cast<size_t>(Verdict::kStranger)], 1u);
  EXPECT_EQ(run.error.largest_before_noise, 0u);
}

TEST(Simulator, AWindowThatOneDecryptorMissesIsSpentAtTheOthers) {
  Parameters parameters = Small();
  parameters.hours = 2;
  parameters.dead_hour = 1;
  parameters.epsilon = 1.5;  // two windows
  parameters.churn = 0;
  const auto run = SimulateWith(parameters).runs.at(0);
  EXPECT_EQ(run.budgets.windows, 1u);
  EXPECT_EQ(run.budgets.windows_left, 0u);
}

TEST(Simulator, ASpentBudgetEndsTheReleases) {
  Parameters parameters = Small();
  parameters.hours = 4;
  parameters.epsilon = 1.5;  // two windows
  parameters.churn = 0;
  const auto run = SimulateWith(parameters).runs.at(0);
  EXPECT_EQ(run.hours[1].lists_unanswered, 0u);
  EXPECT_EQ(run.hours[2].lists_unanswered, run.hours[2].lists);
  EXPECT_EQ(run.budgets.windows_left, 0u);
  EXPECT_LE(run.budgets.epsilon_spent, 1.5);
}

TEST(Simulator, StopsAfterTheHourItIsIn) {
  Parameters parameters = Small();
  parameters.hours = 50;
  const auto streams = ReadKernelStreams("data/kernel-streams");
  const auto simulated =
      Simulate(parameters, streams.value(), [](std::string_view, double share) { return share >= 1.0; });
  ASSERT_TRUE(simulated.has_value());
  EXPECT_TRUE(simulated->stopped);
  EXPECT_EQ(simulated->runs.at(0).hours.size(), 1u);
}

TEST(Simulator, KeepsARunWhenItIsStoppedBeforeTheNext) {
  Parameters parameters = Small();
  parameters.devices = 2100;  // enrolled in two steps
  parameters.decryptors = 1;
  parameters.private_queries = 0;
  parameters.reports = {ReportKind::kMasked, ReportKind::kBfv};
  const auto streams = ReadKernelStreams("data/kernel-streams");
  bool go_on = true;
  const auto simulated = Simulate(parameters, streams.value(), [&](std::string_view what, double share) {
    if (what == "reporting" && share >= 1) go_on = false;
    return go_on;
  });
  ASSERT_TRUE(simulated.has_value()) << simulated.error().message;
  EXPECT_TRUE(simulated->stopped);
  ASSERT_EQ(simulated->runs.size(), 1u);
  EXPECT_EQ(simulated->runs[0].hours.size(), 1u);
}

TEST(Simulator, ParametersThatMakeNoSenseAreNamed) {
  const auto streams = ReadKernelStreams("data/kernel-streams");
  const auto refusal = [&](auto change) {
    Parameters parameters = Small();
    change(parameters);
    const auto simulated = Simulate(parameters, streams.value(), GoOn);
    return simulated.has_value() ? "simulated" : simulated.error().message;
  };
  EXPECT_THAT(refusal([](Parameters& p) { p.devices = 0; }), HasSubstr("devices must be from 1"));
  EXPECT_THAT(refusal([](Parameters& p) { p.load = 1; }), HasSubstr("load must be between"));
  EXPECT_THAT(refusal([](Parameters& p) { p.job_hours = 1e-9; }), HasSubstr("job hours must be from 0.01"));
  EXPECT_THAT(refusal([](Parameters& p) { p.dead_hour = p.hours; }), HasSubstr("one of the hours"));
  EXPECT_THAT(refusal([](Parameters& p) { p.epsilon = 0; }), HasSubstr("above 0"));
  EXPECT_THAT(refusal([](Parameters& p) { p.groups = 9; }), HasSubstr("groups must be from 1 to 8"));
  EXPECT_THAT(refusal([](Parameters& p) { p.decryptors = 0; }), HasSubstr("decryptors"));
  EXPECT_THAT(Simulate(Small(), {}, GoOn).error().message, HasSubstr("kernel streams"));
}

TEST(Simulator, ThePageIsSelfContained) {
  const std::string page = ToHtml(SimulateWith(Small()));
  EXPECT_THAT(page, testing::StartsWith("<!doctype html>"));
  EXPECT_THAT(page, HasSubstr("<svg"));
  EXPECT_THAT(page, HasSubstr("simulated"));
  for (const char* outside : {"http://", "https://", "src=", "<link", "@import", "url("})
    EXPECT_THAT(page, testing::Not(HasSubstr(outside)));
  // Browsers print no backgrounds otherwise, and the curves' keys are such.
  EXPECT_THAT(page, HasSubstr("print-color-adjust: exact"));
}

}  // namespace
}  // namespace gpusonde::fleet
