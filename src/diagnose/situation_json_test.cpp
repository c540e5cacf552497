// SPDX-License-Identifier: Apache-2.0
#include "diagnose/situation_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "diagnose/explain.h"
#include "diagnose/rank.h"
#include "diagnose/testing/world.h"

namespace gpusonde::diagnose {
namespace {

using testing::HasSubstr;

// Collects every situation of a diagnosis, and checks that it leads to the same verdict when it is read back.
struct SituationJsonTest : testing::Test {
  void Replay(const Situation& situation, const Report& report) {
    const std::string line = WriteSituation(situation);
    const Result<Situation> read = ReadSituation(line);
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(WriteSituation(*read), line);
    const std::vector<Candidate> causes = Rank(*read);
    ASSERT_EQ(causes.size(), report.causes.size());
    for (size_t i = 0; i < causes.size(); ++i) {
      EXPECT_EQ(causes[i].cause, report.causes[i].cause);
      EXPECT_EQ(causes[i].confidence, report.causes[i].confidence);
      EXPECT_EQ(causes[i].share, report.causes[i].share);
    }
    const Explanation explanation = Explain(*read, causes, report.incident.start_ns);
    EXPECT_EQ(explanation.cause.transform(NameOf).value_or(kAbstain), report.incident.cause);
    EXPECT_EQ(explanation.confidence, report.incident.confidence);
    EXPECT_EQ(explanation.sentence, report.incident.sentence);
    ASSERT_EQ(explanation.evidence.size(), report.evidence.size());
    for (size_t i = 0; i < report.evidence.size(); ++i) {
      EXPECT_EQ(explanation.evidence[i].sentence, report.evidence[i].sentence);
      EXPECT_EQ(explanation.evidence[i].during, report.evidence[i].during);
    }
    lines += line;
    ++replayed;
  }

  Diagnosis diagnosis{
      {.explained = [this](const Situation& situation, const Report& report) { Replay(situation, report); }}};
  World world{diagnosis};
  std::string lines;
  int replayed = 0;
};

TEST_F(SituationJsonTest, VerdictsOnTheHostCanBeReplayed) {
  world.Run({.loader_hidden_ns = 5 * kMs}, 150);
  const int64_t from_ns = world.now_ns();
  world.Run({.behind_stranger_ns = 30 * kMs, .loader_hidden_ns = 5 * kMs, .blocked_io_ns = 25 * kMs}, 60);
  world.Sum("disk.bytes", from_ns, 500'000'000, world.stranger);
  world.Sum("host.pressure.io", from_ns, 500 * kMs, std::nullopt);
  world.Finish();
  EXPECT_GT(replayed, 5);
  EXPECT_THAT(lines, HasSubstr("stress"));
}

TEST_F(SituationJsonTest, VerdictsOnAGpuCanBeReplayed) {
  world.Gauge("gpu.clock.sm", 1980);
  world.Run({}, 150);
  world.Gauge("gpu.clock.sm", 990);
  world.Gauge("gpu.xid", 63);
  for (int i = 0; i < 60; ++i) {
    world.Run({.gpu_ns = 40 * kMs});
    if (i % 20 == 0) world.Gauge("gpu.process.utilization", 50, world.stranger);
  }
  world.Finish();
  EXPECT_GT(replayed, 5);
  EXPECT_THAT(lines, HasSubstr("\"xids\":[63]"));
}

TEST_F(SituationJsonTest, VerdictsAboutRanksCanBeReplayed) {
  world.AddRank();
  world.Run({.rank_runs_ns = kMs}, 150);
  world.Run({.rank_runs_ns = kMs, .rank_behind_stranger_ns = 40 * kMs}, 60);
  world.Finish();
  EXPECT_GT(replayed, 5);
  EXPECT_THAT(lines, HasSubstr("train (process 13)"));
}

TEST(ReadSituation, WhatIsMissingOrOfAnotherTypeIsNamed) {
  const std::string line = WriteSituation({.xids = {63}});
  ASSERT_TRUE(ReadSituation(line).has_value());
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string other = line;
    other.replace(other.find(from), from.size(), to);
    const Result<Situation> read = ReadSituation(other);
    return read.has_value() ? std::string("read") : read.error().message;
  };
  EXPECT_THAT(replaced("\"slowdown\":", "\"slow\":"), HasSubstr("\"slowdown\""));
  EXPECT_THAT(replaced("[63]", "[\"63\"]"), HasSubstr("\"xids\""));
  EXPECT_THAT(replaced("[63]", "63"), HasSubstr("\"xids\""));
  EXPECT_THAT(replaced("\"before\":{}", "\"before\":{\"step.nonsense\":1}"), HasSubstr("\"step.nonsense\""));
  EXPECT_THAT(replaced("\"before\":{}", "\"before\":{\"gpu.xid\":1}"), HasSubstr("\"gpu.xid\""));
  EXPECT_THAT(replaced("\"signals\":{}", "\"signals\":{\"nonsense\":{}}"), HasSubstr("\"nonsense\""));
  EXPECT_THAT(replaced("\"ranks\":[]", "\"ranks\":[7]"), HasSubstr("\"name\""));
  EXPECT_THAT(replaced("\"version\":1", "\"version\":2"), HasSubstr("version 2"));
  for (const char* text : {"", "{", "[]", "7", "null", "{}"})
    EXPECT_FALSE(ReadSituation(text).has_value()) << text;
}

}  // namespace
}  // namespace gpusonde::diagnose
