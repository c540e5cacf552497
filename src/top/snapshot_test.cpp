// SPDX-License-Identifier: Apache-2.0
#include "top/snapshot.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace gpusonde::top {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using testing::SizeIs;

// By the address without its parameters.
class SnapshotTest : public testing::Test {
 protected:
  Result<Snapshot> Read() {
    return ReadSnapshot([this](const std::string& target) -> Result<std::string> {
      targets_.push_back(target);
      return answers_.at(target.substr(0, target.find('?')));
    });
  }

  std::map<std::string, std::string> answers_ = {
      {"overview",
       R"({"mode":"up","title":"this machine","from_us":1,"to_us":300000000,"notices":["Full."]})"},
      {"strips", R"({"strips":[
        {"id":"gpu-a","label":"GPU 0","device":"a","name":"H100","ordinal":0,"simulated":true,"values":[10.0,null,54.5]},
        {"id":"a1","metric":"gpu.memory.used","device":"a","ordinal":0,"max":80.0,"values":[1.0,12.0]},
        {"id":"a2","metric":"gpu.power","device":"a","ordinal":0,"max":700.0,"values":[300.0,null]},
        {"id":"a4","metric":"gpu.sm.active","device":"a","ordinal":0,"max":100.0,"values":[3.0,41.5]},
        {"id":"a5","metric":"gpu.tensor.active","device":"a","ordinal":0,"max":100.0,"values":[12.0]},
        {"id":"a3","metric":"gpu.temperature","device":"a","ordinal":0,"max":null,"values":[61,null,null]},
        {"id":"b1","metric":"gpu.clock.sm","device":"b","name":"T4","ordinal":1,"values":[1980.0]},
        {"id":"cpu","max":2.0,"values":[0.41]}],
       "marks":[{"kind":"xid","device":"a","from_us":1,"to_us":1,"code":13},
                {"kind":"xid","device":"a","from_us":2,"to_us":2,"code":79},
                {"kind":"throttled","device":"a","from_us":1,"to_us":299000000,"code":5},
                {"kind":"throttled","device":"b","from_us":1,"to_us":290000000,"code":4}]})"},
      {"processes", R"({"processes":[
        {"pid":9,"name":"busy","command":"","exited_us":null,"cpu_ns":5000000000,"gpu_observed_ns":2500000000,"gpus":[
          {"device":"b","kernels":50,"busy_ns":1250000000,"memory_bytes":null},
          {"device":"a","kernels":50,"busy_ns":2500000000,"memory_bytes":4096}],
          "listening":{"budget":0.5,"spent":0.25,"cost":2.5,"cost_low":-1,"cost_high":6}},
        {"pid":7,"name":"cpu","command":"make","exited_us":null,"cpu_ns":1,"gpus":[]},
        {"pid":6,"name":"gone","command":"gone","exited_us":5,"cpu_ns":1,"gpus":[{"device":"a","kernels":1,"busy_ns":1}]},
        {"pid":5,"name":"idle","command":"idle --now","exited_us":null,"cpu_ns":0,"gpus":[
          {"device":"a","kernels":0,"busy_ns":0,"memory_bytes":1048576}]}]})"},
      {"incidents",
       R"({"incidents":[{"from_us":7,"to_us":null,"name":"hpc","pid":411,"tid":412,"sentence":"slow"},{"from_us":1,"to_us":2,"sentence":"was"}],
        "programs":[{"name":"busy","pid":9,"parts":[{"sentence":""},{"sentence":"always"},{"sentence":"cold"}]},
          {"name":"idle","pid":5,"parts":[{"sentence":""}]},{"name":"gone","pid":6,"parts":[{"sentence":"then"}]}],
        "warnings":[{"from_us":8,"to_us":null,"sentence":"hot"},{"from_us":8,"to_us":9,"sentence":"was"}]})"}};
  std::vector<std::string> targets_;
};

TEST_F(SnapshotTest, ReadsWhatTheApiSays) {
  const Result<Snapshot> snapshot = Read();
  ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message;
  EXPECT_EQ(snapshot->title, "this machine");
  EXPECT_THAT(snapshot->now_us, Optional(300'000'000));
  EXPECT_THAT(snapshot->cpus_busy, Optional(DoubleEq(0.41)));
  EXPECT_THAT(snapshot->cpus, Optional(DoubleEq(2)));
  EXPECT_THAT(snapshot->notices, ElementsAre("Full."));
  ASSERT_THAT(snapshot->gpus, SizeIs(2));
  const Gpu& gpu = snapshot->gpus[0];
  EXPECT_EQ(gpu.name, "H100");
  EXPECT_TRUE(gpu.simulated);
  EXPECT_THAT(gpu.busy, SizeIs(3));
  EXPECT_THAT(gpu.busy_now, Optional(DoubleEq(54.5)));
  EXPECT_THAT(gpu.memory_gib, Optional(DoubleEq(12)));
  EXPECT_THAT(gpu.memory_max_gib, Optional(DoubleEq(80)));
  EXPECT_THAT(gpu.power_w, Optional(DoubleEq(300))) << "the newest part may be without data yet";
  EXPECT_EQ(gpu.temperature_c, std::nullopt) << "an old value isn't now";
  EXPECT_THAT(gpu.sm_active, Optional(DoubleEq(41.5)));
  EXPECT_THAT(gpu.tensor, Optional(DoubleEq(12)));
  EXPECT_THAT(gpu.xid, Optional(79));
  EXPECT_EQ(gpu.slowed_by, "power cap") << "idle doesn't slow";
  EXPECT_EQ(snapshot->gpus[1].slowed_by, "") << "it is over";
  EXPECT_EQ(snapshot->gpus[1].busy_now, std::nullopt);
  EXPECT_THAT(snapshot->gpus[1].clock_mhz, Optional(DoubleEq(1980)));
  EXPECT_THAT(targets_, ElementsAre("overview", "strips?buckets=60&metrics=1&from_us=0&to_us=300000000",
                                    "processes?gpus=1&from_us=295000000&to_us=300000000",
                                    "incidents?buckets=0&from_us=150000000&to_us=300000000"));
}

TEST_F(SnapshotTest, ProcessesAreThoseThatUseGpusAndRun) {
  const Result<Snapshot> snapshot = Read();
  ASSERT_TRUE(snapshot.has_value());
  ASSERT_THAT(snapshot->processes, SizeIs(2));
  const Process& idle = snapshot->processes[0];
  EXPECT_EQ(idle.command, "idle --now");
  EXPECT_EQ(idle.busy, std::nullopt) << "it was not profiled";
  EXPECT_THAT(idle.memory_bytes, Optional(DoubleEq(1 << 20)));
  const Process& busy = snapshot->processes[1];
  EXPECT_EQ(busy.command, "busy");
  EXPECT_THAT(busy.gpus, ElementsAre(0, 1));
  EXPECT_THAT(busy.busy, Optional(DoubleEq(150))) << "of the time observed, on both";
  EXPECT_THAT(busy.kernels_per_second, Optional(DoubleEq(40)));
  EXPECT_THAT(busy.memory_bytes, Optional(DoubleEq(4096)));
  EXPECT_DOUBLE_EQ(busy.cpu, 100);
  EXPECT_EQ(idle.budget, std::nullopt);
  EXPECT_THAT(busy.budget, Optional(DoubleEq(0.5)));
  EXPECT_THAT(busy.spent, Optional(DoubleEq(0.25)));
  EXPECT_THAT(busy.cost, Optional(DoubleEq(2.5)));
  EXPECT_THAT(busy.cost_low, Optional(DoubleEq(-1)));
  EXPECT_THAT(busy.cost_high, Optional(DoubleEq(6)));
}

TEST_F(SnapshotTest, BusyTimeIsALowerBoundWhileWorkOfAProcessIsMissing) {
  EXPECT_FALSE(Read()->gpus[0].busy_at_least) << "nothing says how much was observed";
  const auto busy_at_least = [&](const std::string& observed, const std::string& processes) {
    std::string& strips = answers_["strips"];
    strips = R"({"strips":[{"id":"gpu-a","device":"a","ordinal":0,"values":[1,40.0],"observed":[1,)" +
             observed + "]}]}";
    answers_["processes"] = R"({"processes":[)" + processes + "]}";
    return Read()->gpus.at(0).busy_at_least;
  };
  const auto process = [](const std::string& started_us, const std::string& observed_ns) {
    return R"({"pid":9,"exited_us":null,"started_us":)" + started_us + R"(,"gpu_observed_ns":)" +
           observed_ns + R"(,"gpus":[{"device":"a","kernels":1,"busy_ns":1}]})";
  };
  const std::string half = process("1", "2500000000"), whole = process("1", "5000000000");
  EXPECT_FALSE(busy_at_least("0.5", half)) << "only its own time was observed";
  EXPECT_TRUE(busy_at_least("1", half + "," + whole)) << "half of the time without the work of one";
  EXPECT_FALSE(busy_at_least("1", process("297500000", "2500000000") + "," + whole)) << "it ran no longer";
  EXPECT_TRUE(busy_at_least("0.3", process("1", "0") + "," + process("1", "1500000000")));
  EXPECT_FALSE(busy_at_least("0", process("1", "0")));
}

TEST_F(SnapshotTest, IncidentsAreThoseThatLast) {
  const Result<Snapshot> snapshot = Read();
  ASSERT_THAT(snapshot->incidents, SizeIs(3));
  EXPECT_EQ(snapshot->incidents[0].sentence, "slow");
  EXPECT_EQ(snapshot->incidents[0].process, "hpc (411, thread 412)");
  EXPECT_EQ(snapshot->incidents[2].sentence, "hot");
  EXPECT_EQ(snapshot->incidents[2].process, "");
}

TEST_F(SnapshotTest, WhatDisturbsAllStepsIsOfProgramsThatRunWithoutAnIncident) {
  Result<Snapshot> snapshot = Read();
  ASSERT_THAT(snapshot->incidents, SizeIs(3));
  EXPECT_EQ(snapshot->incidents[1].process, "busy (9)");
  EXPECT_EQ(snapshot->incidents[1].sentence, "always cold");
  answers_["incidents"].insert(answers_["incidents"].find("[{") + 1,
                               R"({"name":"busy","pid":9,"sentence":"slow"},)");
  snapshot = Read();
  ASSERT_THAT(snapshot->incidents, SizeIs(3));
  EXPECT_EQ(snapshot->incidents[0].process, "busy (9)");
  EXPECT_EQ(snapshot->incidents[0].sentence, "slow");
}

TEST_F(SnapshotTest, WithoutDataNothingElseIsAsked) {
  answers_["overview"] = R"({"mode":"up","title":"this machine","from_us":null,"to_us":null})";
  const Result<Snapshot> snapshot = Read();
  ASSERT_TRUE(snapshot.has_value());
  EXPECT_EQ(snapshot->now_us, std::nullopt);
  EXPECT_THAT(targets_, SizeIs(1));
}

TEST_F(SnapshotTest, AnythingElseIsAnErrorOrNothing) {
  const std::map<std::string, std::string> good = answers_;
  for (const auto& [address, whole] : good) {
    for (const char* odd : {"", "null", "[]", "{}", "<html>", "{\"error\":{}}"}) {
      answers_ = good;
      answers_[address] = odd;
      const Result<Snapshot> snapshot = Read();
      ASSERT_FALSE(snapshot.has_value()) << address << odd;
      EXPECT_THAT(snapshot.error().message, HasSubstr(address));
    }
    for (const char* odd : {"null", "7", "[null,7,[],{}]", "[{\"values\":7,\"device\":\"a\",\"gpus\":{}}]"}) {
      answers_ = good;
      answers_[address] = fmt::format(
          R"({{"mode":{0},"to_us":1e300,"notices":{0},"strips":{0},"marks":{0},"processes":{0},"incidents":{0},
            "warnings":{0},"programs":{0}}})",
          odd);
      const Result<Snapshot> snapshot = Read();
      EXPECT_TRUE(snapshot.has_value()) << address << odd << snapshot.error().message;
    }
  }
}

}  // namespace
}  // namespace gpusonde::top
