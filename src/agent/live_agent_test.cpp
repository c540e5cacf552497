// SPDX-License-Identifier: Apache-2.0
#include "agent/live_agent.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>

#include "spool/spool.h"

namespace gpusonde::agent {
namespace {

// A sink in memory that can be told to refuse.
class TestSink : public Sink {
 public:
  Result<int64_t> CommittedThrough(const Id128&) override { return through; }
  Status Commit(const Id128&, int64_t, int64_t first_sequence,
                std::span<const model::Batch> frames) override {
    if (refuse) return Fail(ErrorCode::kUnavailable, "refusing");
    EXPECT_EQ(first_sequence, through + 1) << "no frame is missing, none comes twice";
    through += static_cast<int64_t>(frames.size());
    for (const model::Batch& batch : frames) rows[batch.table] += batch.rows;
    return {};
  }

  bool refuse = false;
  int64_t through = 0;
  std::map<std::string, size_t> rows;
};

class LiveAgentTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "gpusonde_live_" + std::to_string(::getpid());
    std::filesystem::remove_all(folder_);
    if (::getuid() != 0) GTEST_SKIP() << "needs root: samples the whole machine";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  LiveAgent::Options Options() const { return {.spool_folder = folder_, .frequency_hz = 99}; }

  static void Burn() {
    volatile uint64_t x = 0;
    for (int i = 0; i < 100'000'000; ++i) x = x + 1;
  }

  std::string folder_;
  TestSink sink_;
};

TEST_F(LiveAgentTest, EveryRoundReachesTheSink) {
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_TRUE(agent.Finish().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
  EXPECT_GT(sink_.rows["stacks"], 0u);
  EXPECT_EQ(sink_.rows["sources"], 2u) << "at the start, and with its end";
}

TEST_F(LiveAgentTest, WhatTheSinkRefusedComesLaterInOrder) {
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  sink_.refuse = true;
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(sink_.through, 0);
  sink_.refuse = false;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
}

TEST_F(LiveAgentTest, WhatAnEarlierRunLeftIsHandedOverFirst) {
  {
    sink_.refuse = true;
    LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
    Burn();
    ASSERT_TRUE(agent.Round().has_value());
  }
  sink_.refuse = false;
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  EXPECT_GT(sink_.rows["samples"], 0u);
}

TEST_F(LiveAgentTest, ASecondAgentOnTheSameSpoolIsRefused) {
  const LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  EXPECT_EQ(LiveAgent::Create(Options(), sink_).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpusonde::agent
