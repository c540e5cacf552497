// SPDX-License-Identifier: Apache-2.0
#include "store/queries/timeline_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "model/tables/api_calls.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/ranges.h"
#include "model/tables/sources.h"
#include "store/recordings/testing/memory_store.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Id128 kTrained{1, 1}, kServed{1, 2}, kFirstGpu{2, 1}, kSecondGpu{2, 2};

// Writes each event as "NAME START-END".
class Listing : public model::TimelineSink {
 public:
  Status Begin(const model::TimelineNames& names) override {
    start_ns = names.start_ns;
    return {};
  }
  Status Add(const model::GpuWork& work) override {
    last = work;
    return Note(work.name.empty() ? work.copy : work.name, work.start_ns, work.end_ns);
  }
  Status Add(const model::ThreadSpan& span) override { return Note(span.name, span.start_ns, span.end_ns); }
  Status Add(const model::Step& step) override { return Note("step", step.start_ns, step.end_ns); }
  Status Add(const model::Incident& incident) override {
    return Note(incident.cause, incident.start_ns, incident.end_ns.value_or(-1));
  }
  Status Add(const model::MetricValue& value) override {
    return Note(value.metric, value.time_ns, value.time_ns);
  }
  Status End() override { return {}; }

  int64_t start_ns = -1;
  model::GpuWork last;
  std::vector<std::string> events;

 private:
  Status Note(const std::string& name, int64_t start_ns_of, int64_t end_ns) {
    events.push_back(name + " " + std::to_string(start_ns_of) + "-" + std::to_string(end_ns));
    return {};
  }
};

class TimelineQuery : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources, {{.source = {9, 9}, .host = "here", .started_ns = 100, .ended_ns = 900}});
  }
  static model::Kernel KernelAt(std::string name, int64_t start_ns, int64_t end_ns) {
    return {.process = kTrained,
            .device = kFirstGpu,
            .stream = 7,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .name = std::move(name)};
  }
  Listing Read(const model::Selection& selection = {}) {
    Listing listing;
    const auto counts = ReadTimeline(*store_, selection, listing);
    EXPECT_TRUE(counts.has_value()) << counts.error().message;
    return listing;
  }
};

TEST_F(TimelineQuery, EventsComeByStartTheLongerFirst) {
  Add(model::kKernels, {KernelAt("late", 300, 310), KernelAt("early", 200, 400)});
  Add(model::kMemcpys, {{.process = kTrained,
                         .device = kFirstGpu,
                         .start_ns = 250,
                         .end_ns = 260,
                         .bytes = 5,
                         .kind = "htod"}});
  Add(model::kRanges,
      {{.process = kTrained, .start_ns = 200, .end_ns = 300, .kind = "operator", .name = "op"},
       {.process = kTrained, .start_ns = 500, .kind = "annotation", .name = "unended"}});
  Add(model::kApiCalls,
      {{.process = kTrained, .start_ns = 200, .end_ns = 210, .domain = "cuda_runtime", .name = "call"}});
  const Listing listing = Read();
  EXPECT_EQ(listing.start_ns, 100);
  EXPECT_THAT(listing.events, ElementsAre("early 200-400", "htod 250-260", "late 300-310", "op 200-300",
                                          "call 200-210", "unended 500-900"));
}

TEST_F(TimelineQuery, AnEventBelongsToTheTimeInWhichItStarts) {
  Add(model::kKernels, {KernelAt("before", 199, 300), KernelAt("at", 200, 200), KernelAt("after", 300, 301)});
  EXPECT_THAT(Read({.from_ns = 200, .to_ns = 300}).events, ElementsAre("at 200-200"));
}

TEST_F(TimelineQuery, ProcessDeviceAndStreamSelect) {
  model::Kernel other = KernelAt("other", 200, 210);
  other.process = kServed;
  other.device = kSecondGpu;
  Add(model::kKernels, {KernelAt("mine", 200, 210), other});
  Add(model::kRanges, {{.process = kServed, .start_ns = 200, .end_ns = 300, .name = "range"}});
  EXPECT_THAT(Read({.processes = {kTrained}}).events, ElementsAre("mine 200-210"));
  EXPECT_THAT(Read({.processes = {kServed}}).events, ElementsAre("other 200-210", "range 200-300"));
  EXPECT_THAT(Read({.device = kFirstGpu, .stream = 7}).events, ElementsAre("mine 200-210", "range 200-300"));
  EXPECT_THAT(Read({.device = kFirstGpu, .stream = 8}).events, ElementsAre("range 200-300"));
}

TEST_F(TimelineQuery, TimesThatCannotBeAreIgnored) {
  Add(model::kKernels, {KernelAt("backwards", 200, 100), KernelAt("before the epoch", -5, 100)});
  EXPECT_THAT(Read().events, IsEmpty());
}

TEST_F(TimelineQuery, MemoryOfHugeKernelsDoesNotOverflow) {
  model::Kernel kernel = KernelAt("huge", 200, 210);
  kernel.static_shared_bytes = kernel.dynamic_shared_bytes = std::numeric_limits<int64_t>::max();
  Add(model::kKernels, {kernel});
  EXPECT_EQ(Read().last.shared_bytes, 0);  // what doesn't fit
}

TEST_F(TimelineQuery, IncidentsThatLastEndWithTheData) {
  Add(model::kIncidents, {{.incident = {4, 4}, .process = kTrained, .start_ns = 300, .cause = "loader"}});
  EXPECT_THAT(Read().events, ElementsAre("loader 300-900"));
}

}  // namespace
}  // namespace gpusonde::store
