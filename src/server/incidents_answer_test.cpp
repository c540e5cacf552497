// SPDX-License-Identifier: Apache-2.0
#include "server/incidents_answer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/incidents_json.h"

namespace gpusonde::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

store::IncidentInfo SlowSteps(int64_t start_ns, std::optional<int64_t> end_ns) {
  return {.incident = {.incident = {1, 1},
                       .process = {2, 1},
                       .start_ns = start_ns,
                       .end_ns = end_ns,
                       .slowdown = 2.2,
                       .cause = "cpu_contention",
                       .confidence = 0.9,
                       .sentence = "Steps take 2.2 times as long\x1b[31m"},
          .process_name = "train.py",
          .pid = 411,
          .evidence = {{.incident = {1, 1}, .signal = "step.run_queue", .before = 3e4, .during = 9.73e6},
                       {.incident = {1, 1}, .signal = "step.gpu", .before = 9e4, .during = 9e4}},
          .strips = {}};
}

TEST(IncidentsAnswer, WhatTheApiWritesIsReadBack) {
  const int64_t minute_ns = 60'000'000'000;
  const auto answer = ParseIncidents(
      IncidentsJson({.incidents = {SlowSteps(minute_ns, std::nullopt), SlowSteps(0, minute_ns / 2)},
                     .omitted = 3,
                     .steps = 9,
                     .warnings = {}}));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(ToText(*answer),
            "3 incidents before these\n\n"
            "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:30.000Z: train.py (process 411)\n"
            "  Steps take 2.2 times as long\\x1b[31m\n"
            "        0.0 ms →     9.7 ms  CPU taken by others\n\n"
            "1970-01-01T00:01:00.000Z to now: train.py (process 411)\n"
            "  Steps take 2.2 times as long\\x1b[31m\n"
            "        0.0 ms →     9.7 ms  CPU taken by others\n");
}

TEST(IncidentsAnswer, WhatDisturbsAllStepsIsReadBack) {
  const auto answer = ParseIncidents(
      IncidentsJson({.incidents = {},
                     .steps = 9,
                     .programs = {{.name = "train",
                                   .pid = 7,
                                   .parts = {{"step.run_queue", 2e6, "CPU contention all the time."},
                                             {"step.cpu", 1e6, ""}}}},
                     .warnings = {}}));
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_EQ(ToText(*answer),
            "train (process 7): CPU contention all the time.\nno incident: no steps were slow\n");
}

TEST(IncidentsAnswer, OfAllHostsItNamesThemAndThoseThatCanNotBeRead) {
  const auto answer = ParseIncidents(
      R"({"hosts":[{"name":"node-1","error":""},{"name":"node-2","error":"its file is damaged"}],
          "incidents":[{"host":"node-1","name":"hpc","pid":9,"from_us":5,"to_us":null,"sentence":"Slow."}]})");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_THAT(ToText(*answer), HasSubstr("to now: node-1: hpc (process 9)\n  Slow.\n"));
  EXPECT_THAT(answer->errors, ElementsAre(Pair("node-2", "its file is damaged")));
}

TEST(IncidentsAnswer, WithoutIncidentsItSaysWhereThereAreNone) {
  EXPECT_EQ(ToText(*ParseIncidents(R"({"steps":9,"incidents":[]})")), "no incident: no steps were slow\n");
  EXPECT_EQ(ToText(*ParseIncidents(R"({"steps":0,"incidents":[]})")),
            "no steps were found in the GPU work\n");
  EXPECT_EQ(ToText(*ParseIncidents(R"({"hosts":[{"name":"a","error":""}],"incidents":[]})")),
            "no incident on 1 host in the last 24 hours\n");
}

TEST(IncidentsAnswer, ServeIsRecognizedByItsOverview) {
  EXPECT_TRUE(IsOverviewOfServe(R"({"mode":"serve","title":"2 hosts"})"));
  for (const char* text : {R"({"mode":"up"})", R"({"mode":5})", "{}", "[]", "", "5"})
    EXPECT_FALSE(IsOverviewOfServe(text)) << text;
}

TEST(IncidentsAnswer, WhatIsNoneIsAnError) {
  for (const char* text :
       {"", "[]", "{}", R"({"incidents":5})", R"({"incidents":[{"name":1}]})",
        R"({"incidents":[],"hosts":[{"name":"a"}]})", R"({"incidents":[],"programs":[{}]})"}) {
    const auto answer = ParseIncidents(text);
    ASSERT_FALSE(answer.has_value()) << text;
    EXPECT_EQ(answer.error().code, ErrorCode::kCorrupt);
  }
}

}  // namespace
}  // namespace gpusonde::server
