// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "base/time.h"
#include "exporters/timeline/timeline_format.h"

namespace gpusonde::exporters {
namespace {

using model::GpuWork;
using model::ThreadSpan;
using nlohmann::json;

constexpr Id128 kTrain{1, 1}, kOther{1, 2}, kGpu{2, 1}, kSource{3, 1};
constexpr int64_t kMidnightNs = 1'763'683'200 * kNanosPerSecond;  // 2025-11-21
constexpr int64_t kStartNs = kMidnightNs + 3'600 * kNanosPerSecond;

model::TimelineNames Names() {
  return {.start_ns = kStartNs,
          .processes = {{.process = kTrain, .pid = 411, .name = "train", .command = "/opt/train -x"},
                        {.process = kOther, .pid = 411, .name = "train"}},
          .threads = {{.process = kTrain, .tid = 412, .name = "loader"}},
          .devices = {{.device = kGpu, .ordinal = 0, .name = "H100", .sm_count = 132}}};
}

GpuWork Kernel() {
  return {.kind = GpuWork::Kind::kKernel,
          .process = kTrain,
          .device = kGpu,
          .session = 1,
          .correlation = 9,
          .context = 1,
          .stream = 7,
          .start_ns = kStartNs + 1'234'567,
          .end_ns = kStartNs + 1'236'000,
          .name = "_Z4gemmi",
          .grid = {2, 3, 4},
          .block = {32, 1, 1},
          .registers = 40,
          .shared_bytes = 1024};
}

class Chrome : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(sink_->Begin(Names()).has_value()); }
  template <class Event>
  void Add(const Event& event) {
    ASSERT_TRUE(sink_->Add(event).has_value());
  }
  json Finish() {
    EXPECT_TRUE(sink_->End().has_value());
    return json::parse(text_);
  }
  // The only event with this phase and, unless empty, category.
  static json Only(const json& trace, std::string_view phase, std::string_view category = "") {
    json found;
    for (const json& event : trace["traceEvents"]) {
      if (event["ph"] != phase || (!category.empty() && event["cat"] != category)) continue;
      EXPECT_TRUE(found.is_null()) << "several";
      found = event;
    }
    return found;
  }
  // The name that metadata gives to a track.
  static std::string NameOf(const json& trace, std::string_view what, int64_t pid, int64_t tid) {
    for (const json& event : trace["traceEvents"])
      if (event["ph"] == "M" && event["name"] == what && event["pid"] == pid && event["tid"] == tid)
        return event["args"]["name"];
    return "";
  }

  std::string text_;
  std::unique_ptr<model::TimelineSink> sink_ = kChrome.create(
      [this](std::string_view bytes) -> Status {
        text_ += bytes;
        return {};
      },
      "run.sonde");
};

TEST_F(Chrome, AKernelIsAsKinetoWritesIt) {
  Add(Kernel());
  const json trace = Finish();
  EXPECT_EQ(trace["baseTimeNanoseconds"], kMidnightNs);
  EXPECT_EQ(trace["deviceProperties"], json::parse(R"([{"id":0,"name":"H100","numSms":132}])"));
  EXPECT_EQ(Only(trace, "X"), json::parse(R"json({"ph":"X","cat":"kernel","name":"gemm(int)","pid":0,"tid":7,
      "ts":3600001234.567,"dur":1.433,"args":{"device":0,"context":1,"stream":7,"correlation":9,
      "grid":[2,3,4],"block":[32,1,1],"registers per thread":40,"shared memory":1024}
})json"));
  EXPECT_EQ(NameOf(trace, "process_name", 0, 0), "GPU 0");
  EXPECT_EQ(NameOf(trace, "thread_name", 0, 7), "stream 7");
}

TEST_F(Chrome, TimesHaveAllDigits) {
  Add(Kernel());
  Finish();
  EXPECT_NE(text_.find(R"("ts":3600001234.567,"dur":1.433)"), std::string::npos) << text_;
}

TEST_F(Chrome, AnArrowLeadsFromTheLaunchToItsKernel) {
  Add(Kernel());
  Add(ThreadSpan{.process = kTrain,
                 .tid = 412,
                 .session = 1,
                 .correlation = 9,
                 .start_ns = kStartNs,
                 .end_ns = kStartNs + 500,
                 .domain = "cuda_runtime",
                 .name = "cudaLaunchKernel"});
  const json trace = Finish();
  const json call = Only(trace, "X", "cuda_runtime"), from = Only(trace, "s"), to = Only(trace, "f");
  EXPECT_EQ(call["args"]["correlation"], 9);
  EXPECT_EQ(from["id"], to["id"]);
  EXPECT_EQ(from["ts"], call["ts"]);
  EXPECT_EQ(from["tid"], 412);
  EXPECT_EQ(to["ts"], Only(trace, "X", "kernel")["ts"]);
  EXPECT_EQ(NameOf(trace, "process_name", 411, 0), "train");
  EXPECT_EQ(NameOf(trace, "thread_name", 411, 412), "loader");
}

TEST_F(Chrome, TheSameNumbersOfOtherProcessesGetTracksAndIdsOfTheirOwn) {
  Add(Kernel());
  GpuWork other = Kernel();
  other.process = kOther;
  Add(other);
  ThreadSpan span{.process = kTrain, .tid = 411, .start_ns = kStartNs, .end_ns = kStartNs, .name = "a"};
  span.kind = ThreadSpan::Kind::kAnnotation;
  Add(span);
  span.process = kOther;
  Add(span);
  const json trace = Finish();
  std::set<std::pair<int64_t, int64_t>> streams, threads;
  std::set<int64_t> correlations;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    (event["cat"] == "kernel" ? streams : threads)
        .insert({event["pid"].get<int64_t>(), event["tid"].get<int64_t>()});
    if (event["cat"] == "kernel") correlations.insert(event["args"]["correlation"].get<int64_t>());
  }
  EXPECT_EQ(streams.size(), 2u);
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(correlations.size(), 2u);
}

TEST_F(Chrome, StepsIncidentsAndRangesThatNestInNothingAreAsynchronous) {
  Add(model::Step{.process = kTrain,
                  .tid = 42,
                  .type = {5, 5},
                  .ordinal = 3,
                  .start_ns = kStartNs,
                  .end_ns = kStartNs + 1000});
  Add(model::Incident{.incident = {6, 6},
                      .process = kTrain,
                      .start_ns = kStartNs,
                      .end_ns = kStartNs + 2000,
                      .slowdown = 1.5,
                      .cause = "throttled",
                      .sentence = "the clocks were low"});
  ThreadSpan range{
      .process = kTrain, .tid = 412, .start_ns = kStartNs, .end_ns = kStartNs + 5, .name = "epoch"};
  range.kind = ThreadSpan::Kind::kStartEnd;
  Add(range);
  const json trace = Finish();
  EXPECT_EQ(Only(trace, "b", "step")["args"]["step"], 3);
  EXPECT_EQ(Only(trace, "b", "step")["args"]["thread"], 42);
  EXPECT_EQ(Only(trace, "e", "step")["id"], Only(trace, "b", "step")["id"]);
  EXPECT_EQ(Only(trace, "b", "incident")["args"]["sentence"], "the clocks were low");
  EXPECT_EQ(Only(trace, "b", "nvtx")["name"], "epoch");
}

TEST_F(Chrome, ValuesOfMetricsAreCountersWithTheirUnit) {
  Add(model::MetricValue{
      .time_ns = kStartNs, .source = kSource, .device = kGpu, .metric = "gpu.power", .value = 312.5});
  Add(model::MetricValue{.time_ns = kStartNs,
                         .source = kSource,
                         .device = kGpu,
                         .metric = "gpu.power",
                         .value = std::numeric_limits<double>::quiet_NaN()});
  const json counter = Only(Finish(), "C");
  EXPECT_EQ(counter["name"], "gpu.power");
  EXPECT_EQ(counter["pid"], 0);
  EXPECT_EQ(counter["args"], json::parse(R"({"W":312.5})"));
}

TEST_F(Chrome, HostileNamesAndNumbersAreJson) {
  GpuWork work = Kernel();
  work.process = {8, 8};
  work.device = {9, 9};
  work.name = "\"}],\xFF\x01\\";
  work.correlation = std::numeric_limits<int64_t>::max();
  work.end_ns = std::numeric_limits<int64_t>::max();
  Add(work);
  Add(ThreadSpan{.process = {8, 8}, .tid = -5, .domain = "\"", .name = "\n\xC2"});
  const json trace = Finish();
  EXPECT_EQ(Only(trace, "X", "kernel")["name"], "\"}],\xEF\xBF\xBD\x01\\");
  EXPECT_EQ(Only(trace, "X", "kernel")["args"]["correlation"], std::numeric_limits<uint32_t>::max());
}

TEST_F(Chrome, ErrorsOfTheOutputEndTheTimeline) {
  const auto sink =
      kChrome.create([](std::string_view) -> Status { return Fail(ErrorCode::kOutOfSpace, "full"); }, "");
  ASSERT_TRUE(sink->Begin(Names()).has_value());
  Status added;
  for (int i = 0; i < 100'000 && added.has_value(); ++i) added = sink->Add(Kernel());
  EXPECT_FALSE(added.has_value());
  EXPECT_FALSE(sink->End().has_value());
}

}  // namespace
}  // namespace gpusonde::exporters
