// SPDX-License-Identifier: Apache-2.0
#include "agent/live_agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent/rows_testing.h"
#include "base/time.h"
#include "diagnose/testing/world.h"
#include "model/batch_rows.h"
#include "spool/spool.h"

namespace gpusonde::agent {
namespace {

// An in-memory sink that can be made to refuse frames.
class TestSink : public Sink {
 public:
  Result<int64_t> CommittedThrough(const Id128&) override { return durable; }
  Result<int64_t> IngestedThrough(const Id128&, int64_t, int64_t last_sequence) override {
    if (reads_spool) through = last_sequence;
    return reads_spool ? last_sequence : durable;
  }
  Status Flush() override {
    durable = through;
    return {};
  }
  Status Ingest(const Id128&, int64_t day, int64_t first_sequence,
                std::vector<model::Batch> frames) override {
    if (refuse) return Fail(ErrorCode::kUnavailable, "refusing");
    EXPECT_GT(first_sequence, through) << "none comes twice";
    if (!may_miss_frames) {
      EXPECT_EQ(first_sequence, through + 1) << "none is missing";
    }
    through = first_sequence + static_cast<int64_t>(frames.size()) - 1;
    for (const model::Batch& batch : frames) rows[batch.table] += batch.rows;
    for (const int64_t offset_ns : FixedColumn<int64_t>(frames, "sources", "epoch_offset_ns"))
      source_offsets.insert(offset_ns);
    for (const int64_t time_ns : FixedColumn<int64_t>(frames, "samples", "time_ns"))
      newest_sample_ns = time_ns, ++samples_of_day[{day, time_ns / kNanosPerDay}];
    const std::vector<std::string> reasons = TextColumn(frames, "drops", "reason");
    const std::vector<int64_t> counts = FixedColumn<int64_t>(frames, "drops", "count");
    for (size_t i = 0; i < reasons.size(); ++i)
      if (reasons[i] == "spool_failed" || reasons[i] == "server_refused") lost_rows += counts[i];
    for (const model::Batch& batch : frames)
      if (batch.table == model::kIncidents.name())
        for (const model::Incident& incident : model::RowsOf(model::kIncidents, batch))
          incidents.push_back(incident);
    return hold ? Status() : Flush();
  }

  Loss TakeLoss() override { return std::exchange(loss, {}); }

  bool refuse = false;
  bool may_miss_frames = false;
  bool reads_spool = false;  // as a sink that sends to a server, and has yet to ask what that has
  Loss loss;
  int64_t lost_rows = 0;  // as counted in the rows
  bool hold = false;      // makes nothing durable before Flush
  int64_t through = 0;
  int64_t durable = 0;
  std::map<std::string, size_t> rows;
  std::map<std::pair<int64_t, int64_t>, int> samples_of_day;  // by the day given and that of their time
  std::set<int64_t> source_offsets;
  int64_t newest_sample_ns = 0;  // in the latest commit
  std::vector<model::Incident> incidents;
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

TEST_F(LiveAgentTest, FramesThatTheSinkRefusedAreSentLaterInOrder) {
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

TEST_F(LiveAgentTest, BeyondTheSpoolsLimitRowsAreDroppedAndCountedUntilTheSinkHasTheRest) {
  LiveAgent::Options options = Options();
  options.max_spool_bytes = 1;
  std::vector<std::string> problems;
  options.on_problem = [&](const std::string& text) { problems.push_back(text); };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  sink_.refuse = true;
  ASSERT_TRUE(agent.Round().has_value());
  const int64_t spooled =
      spool::Read(folder_, 0, [](int64_t, const model::Batch&) { return Status(); }).value().frames;
  EXPECT_GT(spooled, 0);
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_EQ(spool::Read(folder_, 0, [](int64_t, const model::Batch&) { return Status(); }).value().frames,
            spooled);
  EXPECT_THAT(problems, testing::Contains(testing::HasSubstr("its limit")));
  sink_.refuse = false;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(sink_.through, spooled);
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.through, spooled) << "it goes on";
  EXPECT_GT(sink_.lost_rows, 0);
}

TEST_F(LiveAgentTest, AFullSpoolIsUsedAgainOnceItsFramesAreDurable) {
  LiveAgent::Options options = Options();
  options.max_spool_bytes = 1;
  sink_.hold = true;  // as while a server is away: all is ingested, nothing durable
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  const int64_t spooled = sink_.through;
  EXPECT_GT(spooled, 0);
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(sink_.through, spooled) << "it is full";
  ASSERT_TRUE(sink_.Flush().has_value());
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.through, spooled);
  EXPECT_GT(sink_.lost_rows, 0);
}

TEST_F(LiveAgentTest, ASpoolThatIsBoundedInBytesIsNotBoundedInFrames) {
  LiveAgent::Options options = Options();
  options.max_waiting_frames = 1;
  options.max_spool_bytes = int64_t{1} << 30;
  sink_.hold = true;
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  const int64_t spooled = sink_.through;
  EXPECT_GT(spooled, 1);
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.through, spooled);
  EXPECT_EQ(sink_.lost_rows, 0);
}

TEST_F(LiveAgentTest, FramesThatAnEarlierRunHasSentDoNotCountAsWaiting) {
  LiveAgent::Options options = Options();
  options.segment_bytes = 1;
  {
    LiveAgent agent = LiveAgent::Create(options, sink_).value();
    for (int round = 0; round < 2; ++round) ASSERT_TRUE(agent.Round().has_value());
    ASSERT_TRUE(agent.Finish().has_value());
  }
  const int64_t sent = sink_.durable;
  ASSERT_GT(sent, 3);
  TestSink restarted;
  restarted.reads_spool = restarted.hold = true;
  options.max_waiting_frames = sent - 1;
  LiveAgent agent = LiveAgent::Create(options, restarted).value();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(restarted.through, sent);
}

TEST_F(LiveAgentTest, WhatTheSinkGaveUpIsCounted) {
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  sink_.loss = {.rows = 42, .names = true};
  const size_t sources = sink_.rows["sources"];
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(sink_.lost_rows, 42);
  EXPECT_GT(sink_.rows["sources"], sources) << "names are repeated";
}

TEST_F(LiveAgentTest, FramesOfAnEarlierRunAreSentFirst) {
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

TEST_F(LiveAgentTest, AnEarlierRunsFramesThatTheSinkRefusesAreSentLater) {
  {
    sink_.refuse = true;
    LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
    Burn();
    ASSERT_TRUE(agent.Round().has_value());
  }
  Result<LiveAgent> agent = LiveAgent::Create(Options(), sink_);
  ASSERT_TRUE(agent.has_value()) << agent.error().message;
  sink_.refuse = false;
  ASSERT_TRUE(agent->Round().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
}

TEST_F(LiveAgentTest, RowsOfASpoolThatIsOlderThanItsSinkReachIt) {
  sink_.through = sink_.durable = 1000;  // the spool was lost
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.through, 1000);
  EXPECT_GT(sink_.rows["sources"], 0u);
}

TEST_F(LiveAgentTest, ASinkThatFindsOutLaterHowMuchItHasGetsTheNextRowsAndAllNames) {
  sink_.reads_spool = true;
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_LT(sink_.through, 1000);
  const size_t sources = sink_.rows["sources"];
  sink_.loss.skip_to = sink_.through = sink_.durable = 1000;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.through, 1000);
  EXPECT_GT(sink_.rows["sources"], sources);
  EXPECT_GT(sink_.lost_rows, 0) << "those of the first round";
}

TEST_F(LiveAgentTest, ADamagedSpoolKeepsNoLaterRowsFromTheSink) {
  LiveAgent::Options options = Options();
  options.segment_bytes = 1;
  {
    sink_.refuse = true;
    LiveAgent agent = LiveAgent::Create(options, sink_).value();
    ASSERT_TRUE(agent.Round().has_value());
  }
  const std::string first = folder_ + "/0000000000000000001.segment";
  std::filesystem::resize_file(first, std::filesystem::file_size(first) - 1);
  sink_.refuse = false;
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
  EXPECT_TRUE(std::filesystem::exists(spool::DamagedFolderOf(folder_)));
  std::filesystem::remove_all(spool::DamagedFolderOf(folder_));
}

TEST_F(LiveAgentTest, ASpoolThatIsDamagedWhileItRunsKeepsNoLaterRowsFromTheSink) {
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  sink_.refuse = true;
  ASSERT_TRUE(agent.Round().has_value());
  const std::string segment = folder_ + "/0000000000000000001.segment";
  std::fstream(segment, std::ios::in | std::ios::out | std::ios::binary).seekp(60) << "damage";
  ASSERT_TRUE(agent.Round().has_value());  // shows that the frame was whole once
  sink_.refuse = false;
  sink_.may_miss_frames = true;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_FALSE(std::filesystem::exists(segment));
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
  EXPECT_GT(sink_.rows["sources"], 0u) << "all names";
}

TEST_F(LiveAgentTest, ASpoolThatTheSinkFindsDamagedIsBegunAnew) {
  sink_.reads_spool = sink_.hold = true;
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  ASSERT_TRUE(agent.Round().has_value());
  const size_t sources = sink_.rows["sources"];
  sink_.loss.spool = true;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/0000000000000000001.segment"));
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.rows["sources"], sources) << "all names";
}

TEST_F(LiveAgentTest, FramesThatWaitOverMidnightKeepTheirDay) {
  constexpr int64_t kDay = 20'000;
  LiveAgent::Options options = Options();
  // Half past eleven in the evening; the clock then steps over midnight.
  const int64_t offset_ns = (kDay * 48 + 47) * 1'800 * kNanosPerSecond - MonotonicNow();
  int64_t step_ns = 0;
  options.measure_epoch_offset = [&] { return offset_ns + step_ns; };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  sink_.refuse = true;
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  step_ns = 3'600 * kNanosPerSecond;
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(sink_.through, 0);
  sink_.refuse = false;
  ASSERT_TRUE(agent.Finish().has_value());
  using testing::Gt;
  using testing::Pair;
  EXPECT_THAT(sink_.samples_of_day, testing::ElementsAre(Pair(std::pair(kDay, kDay), Gt(0)),
                                                         Pair(std::pair(kDay + 1, kDay + 1), Gt(0))));
  EXPECT_EQ(sink_.rows["sources"], 5u) << "each at its start and with its end, the second also for its day";
}

TEST_F(LiveAgentTest, FramesThatAreNotDurableStayInTheSpool) {
  sink_.hold = true;
  size_t held = 0;
  {
    LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
    Burn();
    ASSERT_TRUE(agent.Round().has_value());
    ASSERT_TRUE(agent.Round().has_value());
    held = sink_.rows["samples"];
    EXPECT_GT(held, 0u);
  }
  // Agent and sink both die; the sink loses what it had not made durable.
  sink_.through = 0;
  sink_.rows.clear();
  LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  EXPECT_EQ(sink_.rows["samples"], held);
  ASSERT_TRUE(agent.Finish().has_value());
  EXPECT_EQ(sink_.durable, sink_.through);
}

TEST_F(LiveAgentTest, AClockThatStepsBeginsANewSourceAndLosesNothing) {
  LiveAgent::Options options = Options();
  // Noon of some day, because all names are repeated at midnight.
  const int64_t offset_ns = (int64_t{20'000} * 24 + 12) * 3'600 * kNanosPerSecond - MonotonicNow();
  int64_t step_ns = 0;
  options.measure_epoch_offset = [&] { return offset_ns + step_ns; };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  const int64_t before_ns = sink_.newest_sample_ns;
  const size_t samples_before = sink_.rows["samples"];
  EXPECT_GT(samples_before, 0u);

  step_ns = -3'600 * kNanosPerSecond;
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_TRUE(agent.Finish().has_value());
  EXPECT_EQ(sink_.rows["sources"], 4u) << "each at its start and with its end";
  EXPECT_EQ(sink_.source_offsets, (std::set<int64_t>{offset_ns, offset_ns + step_ns}));
  EXPECT_GT(sink_.rows["samples"], samples_before);
  EXPECT_LT(sink_.newest_sample_ns, before_ns + step_ns / 2) << "times follow the clock";
}

// The previous run left an open incident; steps before and after a step of the clock can't be compared.
TEST_F(LiveAgentTest, AnIncidentThatWasRecalledEndsWhenTheClockSteps) {
  using diagnose::World;
  LiveAgent::Options options = Options();
  const int64_t offset_ns = diagnose::kBegin + 9 * kNanosPerSecond - MonotonicNow();
  int64_t step_ns = 0;
  options.measure_epoch_offset = [&] { return offset_ns + step_ns; };
  int reports = 0;
  options.on_incident = [&](const diagnose::Report&) { ++reports; };
  options.recall = [](diagnose::Diagnosis& diagnosis) -> Status {
    World world(diagnosis);
    world.Run({}, 150);
    world.Run({.behind_stranger_ns = 40 * kMs}, 60);
    diagnosis.Ingest(model::GpuSession{
        .process = world.workload, .session = 1, .start_ns = diagnose::kBegin, .end_ns = world.now_ns()});
    EXPECT_EQ(diagnosis.Reports().size(), 1u);
    return {};
  };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  EXPECT_EQ(reports, 0) << "the previous run reported it";
  EXPECT_TRUE(sink_.incidents.empty()) << "and wrote its row";
  step_ns = 3'600 * kNanosPerSecond;
  ASSERT_TRUE(agent.Round().has_value());
  ASSERT_FALSE(sink_.incidents.empty());
  const model::Incident& incident = sink_.incidents.back();
  EXPECT_EQ(incident.cause, "cpu_contention");
  EXPECT_GT(incident.end_ns, incident.start_ns);
  EXPECT_LT(incident.end_ns, diagnose::kBegin + 600 * kNanosPerSecond) << "on its own clock";
  EXPECT_EQ(reports, 1) << "reports the end";
  ASSERT_TRUE(agent.Finish().has_value());
}

// On a loaded machine it takes seconds to load the kernel's programs again.
TEST_F(LiveAgentTest, TheTimeThatANewSourceTakesToBeginIsNoHang) {
  using diagnose::World;
  LiveAgent::Options options = Options();
  const int64_t offset_ns = diagnose::kBegin + 6 * kNanosPerSecond - MonotonicNow();
  int64_t step_ns = 0;
  int asked = 0;
  options.measure_epoch_offset = [&] {
    // To find the step; then to begin the source.
    if (step_ns != 0 && ++asked == 2) std::this_thread::sleep_for(std::chrono::seconds(8));
    return offset_ns + step_ns;
  };
  options.recall = [](diagnose::Diagnosis& diagnosis) -> Status {
    World world(diagnosis);
    world.Run({}, 200);
    return {};
  };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  step_ns = 3'600 * kNanosPerSecond;
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_EQ(asked, 2);
  for (const model::Incident& incident : sink_.incidents) EXPECT_NE(incident.cause, "hang");
  ASSERT_TRUE(agent.Finish().has_value());
}

TEST_F(LiveAgentTest, AFailedRecallDoesNotStopTheDiagnosis) {
  LiveAgent::Options options = Options();
  options.recall = [](diagnose::Diagnosis&) -> Status { return Fail(ErrorCode::kIo, "the disk is gone"); };
  LiveAgent agent = LiveAgent::Create(options, sink_).value();
  Burn();
  ASSERT_TRUE(agent.Round().has_value());
  EXPECT_GT(sink_.rows["samples"], 0u);
  ASSERT_TRUE(agent.Finish().has_value());
}

TEST_F(LiveAgentTest, ASecondAgentOnTheSameSpoolIsRefused) {
  const LiveAgent agent = LiveAgent::Create(Options(), sink_).value();
  EXPECT_EQ(LiveAgent::Create(Options(), sink_).error().code, ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace gpusonde::agent
