// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <perfetto.pb.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/time.h"
#include "base/utf8.h"
#include "exporters/timeline/timeline_format.h"

namespace gpusonde::exporters {
namespace {

using model::GpuWork;
using model::ThreadSpan;
using perfetto::TrackEvent;
using testing::ElementsAre;

constexpr Id128 kTrained{1, 1}, kServed{1, 2}, kGpu0{2, 1}, kRun{3, 1};
constexpr int64_t kBeginNs = 1'763'683'200 * kNanosPerSecond;

// A track event with what it refers to by id.
struct Event {
  uint64_t time_ns = 0;
  TrackEvent event;
  std::string name;
  std::string category;
  std::string track;   // its name, "pid 411" or "tid 412"
  std::string parent;  // that track's
  std::map<std::string, std::string> arguments;
};

class Perfetto : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(
        sink_
            ->Begin(
                {.start_ns = kBeginNs,
                 .processes = {{.process = kTrained, .pid = 411, .name = "train", .command = "/opt/train"}},
                 .threads = {{.process = kTrained, .tid = 412, .name = "loader"}},
                 .devices = {{.device = kGpu0, .ordinal = 0, .name = "H100"}}})
            .has_value());
  }
  template <class Row>
  void Add(const Row& row) {
    ASSERT_TRUE(sink_->Add(row).has_value());
  }

  static GpuWork KernelAt(int64_t start_ns, int64_t end_ns) {
    return {.kind = GpuWork::Kind::kKernel,
            .process = kTrained,
            .device = kGpu0,
            .session = 1,
            .correlation = 9,
            .stream = 7,
            .start_ns = kBeginNs + start_ns,
            .end_ns = kBeginNs + end_ns,
            .name = "_Z4gemmi",
            .grid = {2, 3, 4},
            .registers = 40};
  }

  std::vector<Event> Finish() {
    EXPECT_TRUE(sink_->End().has_value());
    perfetto::Trace trace;
    EXPECT_TRUE(trace.ParseFromString(bytes_));
    std::vector<Event> events;
    for (const perfetto::TracePacket& packet : trace.packet()) {
      EXPECT_EQ(packet.trusted_packet_sequence_id(), 1u);
      Remember(packet);
      if (packet.has_track_event()) events.push_back(Resolve(packet));
    }
    return events;
  }
  // Those that begin a slice.
  std::vector<Event> FinishBegins() {
    std::vector<Event> events = Finish();
    std::erase_if(events,
                  [](const Event& event) { return event.event.type() != TrackEvent::TYPE_SLICE_BEGIN; });
    return events;
  }

  std::string bytes_;
  std::unique_ptr<model::TimelineSink> sink_ = kPerfetto.create(
      [this](std::string_view bytes) -> Status {
        bytes_ += bytes;
        return {};
      },
      "");

 private:
  using Texts = std::map<uint64_t, std::string>;

  void Remember(const perfetto::TracePacket& packet) {
    const auto add = [](const auto& entries, Texts& texts) {
      for (const perfetto::InternedString& entry : entries)
        EXPECT_TRUE(texts.emplace(entry.iid(), entry.name()).second) << entry.name();
    };
    add(packet.interned_data().event_names(), names_);
    add(packet.interned_data().event_categories(), categories_);
    add(packet.interned_data().debug_annotation_names(), arguments_);
    if (packet.has_track_descriptor()) {
      const perfetto::TrackDescriptor& track = packet.track_descriptor();
      EXPECT_TRUE(tracks_.emplace(track.uuid(), track).second) << "described twice";
    }
  }
  Event Resolve(const perfetto::TracePacket& packet) {
    const TrackEvent& event = packet.track_event();
    Event resolved{.time_ns = packet.timestamp(), .event = event};
    resolved.name = event.has_name_iid() ? names_.at(event.name_iid()) : event.name();
    if (event.category_iids_size() > 0) resolved.category = categories_.at(event.category_iids(0));
    const perfetto::TrackDescriptor& track = tracks_.at(event.track_uuid());
    resolved.track = NameOf(track);
    if (track.has_parent_uuid()) resolved.parent = NameOf(tracks_.at(track.parent_uuid()));
    for (const perfetto::DebugAnnotation& argument : event.debug_annotations())
      resolved.arguments[arguments_.at(argument.name_iid())] =
          argument.has_string_value() ? argument.string_value() : std::to_string(argument.int_value());
    return resolved;
  }
  static std::string NameOf(const perfetto::TrackDescriptor& track) {
    if (track.has_process()) return "pid " + std::to_string(track.process().pid());
    if (track.has_thread()) return "tid " + std::to_string(track.thread().tid());
    return track.name();
  }

  Texts names_, categories_, arguments_;
  std::map<uint64_t, perfetto::TrackDescriptor> tracks_;
};

TEST_F(Perfetto, AKernelIsASliceOfItsStream) {
  Add(KernelAt(5, 20));
  const std::vector<Event> events = Finish();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].event.type(), TrackEvent::TYPE_SLICE_BEGIN);
  EXPECT_EQ(events[1].event.type(), TrackEvent::TYPE_SLICE_END);
  EXPECT_EQ(events[0].time_ns, static_cast<uint64_t>(kBeginNs + 5));
  EXPECT_EQ(events[1].time_ns, static_cast<uint64_t>(kBeginNs + 20));
  EXPECT_EQ(events[0].name, "gemm(int)");
  EXPECT_EQ(events[0].category, "kernel");
  EXPECT_EQ(events[0].track, "stream 7");
  EXPECT_EQ(events[0].parent, "GPU 0: H100");
  EXPECT_EQ(events[0].arguments.at("grid"), "2 × 3 × 4");
  EXPECT_EQ(events[0].arguments.at("registers per thread"), "40");
}

TEST_F(Perfetto, AnArrowLeadsFromTheLaunchToItsKernel) {
  Add(KernelAt(5, 20));
  Add(ThreadSpan{.process = kTrained,
                 .tid = 412,
                 .session = 1,
                 .correlation = 9,
                 .start_ns = kBeginNs,
                 .end_ns = kBeginNs + 3,
                 .domain = "cuda_runtime",
                 .name = "cudaLaunchKernel"});
  const std::vector<Event> events = FinishBegins();
  ASSERT_EQ(events.size(), 2u);
  ASSERT_EQ(events[0].event.flow_ids_size(), 1);
  ASSERT_EQ(events[1].event.flow_ids_size(), 1);
  EXPECT_EQ(events[0].event.flow_ids(0), events[1].event.flow_ids(0));
  EXPECT_EQ(events[0].event.correlation_id(), events[1].event.correlation_id());
  EXPECT_EQ(events[1].track, "tid 412");
  EXPECT_EQ(events[1].parent, "pid 411");
}

TEST_F(Perfetto, KernelsThatOverlapGetTracksOfTheSameName) {
  Add(KernelAt(0, 100));
  Add(KernelAt(50, 150));
  Add(KernelAt(100, 200));
  const std::vector<Event> events = FinishBegins();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_NE(events[0].event.track_uuid(), events[1].event.track_uuid());
  EXPECT_EQ(events[0].event.track_uuid(), events[2].event.track_uuid());
  for (const Event& event : events) EXPECT_EQ(event.track, "stream 7");
}

TEST_F(Perfetto, TheSameStreamOfAnotherProcessIsAnotherTrack) {
  Add(KernelAt(0, 10));
  GpuWork other = KernelAt(0, 10);
  other.process = kServed;
  Add(other);
  const std::vector<Event> events = FinishBegins();
  EXPECT_NE(events[0].event.track_uuid(), events[1].event.track_uuid());
  EXPECT_EQ(events[1].track, "stream 7 of an unknown process");
}

TEST_F(Perfetto, StepsIncidentsAndMetricsHaveRowsOfTheirOwn) {
  Add(model::Step{.process = kTrained, .ordinal = 3, .start_ns = kBeginNs, .end_ns = kBeginNs + 10});
  Add(model::Step{.process = kTrained, .tid = 42, .start_ns = kBeginNs, .end_ns = kBeginNs + 10});
  Add(model::Incident{.process = kTrained,
                      .start_ns = kBeginNs,
                      .end_ns = kBeginNs + 20,
                      .cause = "throttled",
                      .sentence = "the clocks were low"});
  Add(model::MetricValue{
      .time_ns = kBeginNs, .source = kRun, .device = kGpu0, .metric = "gpu.power", .value = 312.5});
  const std::vector<Event> events = Finish();
  ASSERT_EQ(events.size(), 7u);
  EXPECT_EQ(events[0].track, "steps");
  EXPECT_EQ(events[0].arguments.at("step"), "3");
  EXPECT_EQ(events[2].track, "steps of thread 42") << "of another loop in the process";
  EXPECT_EQ(events[4].track, "incidents");
  EXPECT_EQ(events[4].arguments.at("sentence"), "the clocks were low");
  EXPECT_EQ(events[6].track, "gpu.power (W)");
  EXPECT_EQ(events[6].parent, "GPU 0: H100");
  EXPECT_EQ(events[6].event.double_counter_value(), 312.5);
}

TEST_F(Perfetto, NamesAreUtf8AndMoreThanAreKeptByIdStayRight) {
  GpuWork work = KernelAt(0, 1);
  work.name = "a\xFF";
  Add(work);
  for (int i = 0; i < 30'000; ++i) {
    work.name = "kernel_" + std::to_string(i);
    Add(work);
  }
  const std::vector<Event> events = FinishBegins();
  ASSERT_EQ(events.size(), 30'001u);
  EXPECT_EQ(events[0].name, "a" + std::string(kReplacement));
  EXPECT_EQ(events[1].name, "kernel_0");
  EXPECT_EQ(events.back().name, "kernel_29999");
}

}  // namespace
}  // namespace gpusonde::exporters
