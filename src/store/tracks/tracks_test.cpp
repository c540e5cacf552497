// SPDX-License-Identifier: Apache-2.0
#include "store/tracks/tracks.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/memsets.h"
#include "model/tables/processes.h"
#include "model/tables/ranges.h"
#include "model/tables/samples.h"
#include "model/tables/signals.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/steps.h"
#include "model/tables/threads.h"
#include "store/recordings/testing/memory_store.h"
#include "store/tracks/launched_work.h"

namespace gpusonde::store {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Id128 kTrains{1, 1}, kServes{1, 2}, kFirstGpu{2, 2}, kSecondGpu{2, 1}, kSource{9, 9};
constexpr int64_t kSecond = 1'000'000'000;

class TracksTest : public MemoryStoreTest {
 protected:
  void SetUp() override {
    MemoryStoreTest::SetUp();
    ASSERT_NE(store_, nullptr);
    Add(model::kSources,
        {{.source = kSource, .host = "here", .started_ns = kSecond, .ended_ns = 9 * kSecond}});
    Add(model::kDevices,
        {{.device = kFirstGpu, .source = kSource, .ordinal = 0, .name = "H100", .simulated = true},
         {.device = kSecondGpu, .source = kSource, .ordinal = 1, .name = "H100"}});
    Add(model::kProcesses, {{.process = kTrains, .source = kSource, .pid = 41, .name = "train"}});
    Add(model::kThreads, {{.process = kTrains, .tid = 41, .name = "main"},
                          {.process = kTrains, .tid = 42, .name = "gpusonde"}});
  }
  static model::Kernel KernelAt(Id128 device, int64_t start_ns, int64_t end_ns, std::string name = "gemm") {
    return {.process = kTrains,
            .device = device,
            .session = 1,
            .correlation = 5,
            .stream = 7,
            .start_ns = start_ns,
            .end_ns = end_ns,
            .name = std::move(name),
            .grid_x = 2,
            .grid_y = 3,
            .grid_z = 1,
            .block_x = 64,
            .block_y = 1,
            .block_z = 1};
  }
  // Each track as "KIND LANE: NAME START+LENGTH …", times in ms, of several events with "×COUNT".
  std::vector<std::string> Read(int64_t from_ns, int64_t to_ns, TracksOptions options = {.columns = 1000},
                                model::Selection selection = {}) {
    selection.from_ns = from_ns;
    selection.to_ns = to_ns;
    const Result<Tracks> read = ReadTracks(*store_, selection, options);
    EXPECT_TRUE(read.has_value()) << read.error().message;
    std::vector<std::string> shown;
    for (const Track& track : read->tracks) {
      std::string text =
          fmt::format("{} {}:", NameOf(track.kind), track.stream.value_or(track.tid.value_or(0)));
      for (const Slice& slice : track.slices) {
        const EventName& name = read->names[static_cast<size_t>(slice.name)];
        text += fmt::format(" {}{} {}+{}", slice.row > 0 ? fmt::format("[{}]", slice.row) : "", name.text,
                            slice.start_ns / 1'000'000, slice.length_ns / 1'000'000);
        if (slice.count > 1) text += fmt::format("×{}", slice.count);
        if (name.kind == EventKind::kState) text += fmt::format("={}", slice.busy_ns / 1'000'000);
      }
      shown.push_back(text);
    }
    tracks_ = *read;
    return shown;
  }
  Tracks tracks_;
};

TEST_F(TracksTest, WorkOfAllKindsIsOnItsStream) {
  Add(model::kKernels, {KernelAt(kFirstGpu, 2'000'000'000, 2'010'000'000, "_Z4gemmv")});
  Add(model::kMemcpys, {{.process = kTrains,
                         .device = kFirstGpu,
                         .stream = 7,
                         .start_ns = 2'020'000'000,
                         .end_ns = 2'030'000'000,
                         .bytes = 8,
                         .kind = "htod"}});
  Add(model::kMemsets, {{.process = kTrains,
                         .device = kFirstGpu,
                         .stream = 8,
                         .start_ns = 2'040'000'000,
                         .end_ns = 2'050'000'000,
                         .bytes = 8}});
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond),
              ElementsAre("stream 7: gemm() 2000+10 htod 2020+10", "stream 8: memset 2040+10"));
  EXPECT_EQ(tracks_.events, 3);
  ASSERT_EQ(tracks_.devices.size(), 1U);
  EXPECT_TRUE(tracks_.devices[0].simulated);
  ASSERT_EQ(tracks_.processes.size(), 1U);
  EXPECT_EQ(tracks_.processes[0].pid, 41);
}

TEST_F(TracksTest, WhatReachesIntoTheTimeIsThereOnce) {
  Add(model::kKernels,
      {KernelAt(kFirstGpu, 1'500'000'000, 2'100'000'000), KernelAt(kFirstGpu, 2'000'000'000, 2'200'000'000),
       KernelAt(kFirstGpu, 2'900'000'000, 3'500'000'000), KernelAt(kFirstGpu, 3'000'000'000, 3'100'000'000),
       KernelAt(kFirstGpu, 1'000'000'000, 2'000'000'000)});
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond),
              ElementsAre("stream 7: gemm 1500+600 gemm 2000+200 gemm 2900+600"));
}

TEST_F(TracksTest, PackedKernelsAreLikeOthers) {
  // In the second before, one that runs into the time and one that doesn't; in the time, two of which one
  // starts after it.
  model::KernelPack before{.process = kTrains,
                           .device = kFirstGpu,
                           .session = 1,
                           .stream = 7,
                           .name = "gemm",
                           .start_ns = kSecond,
                           .end_ns = 2'100'000'000,
                           .count = 2,
                           .offsets_ns = {900'000'000, 100'000'000},
                           .durations_ns = {300'000'000, 50'000'000},
                           .correlations = {5, 6},
                           .graph_nodes = {}};
  model::KernelPack during = before;
  during.start_ns = 2 * kSecond;
  during.end_ns = 2'960'000'000;
  during.offsets_ns = {500'000'000, 950'000'000};
  during.durations_ns = {10'000'000, 10'000'000};
  during.grid_x = 9;
  Add(model::kKernelPacks, {before, during});
  EXPECT_THAT(Read(2 * kSecond, 2'900'000'000), ElementsAre("stream 7: gemm 1900+300 gemm 2500+10"));
  const auto work = ReadLaunchedWork(*store_, {kTrains, kFirstGpu, 7, 2'500'000'000});
  ASSERT_TRUE(work.has_value() && work->has_value());
  EXPECT_EQ((*work)->work.grid[0], 9);
  EXPECT_EQ((*work)->work.correlation, 5);
  EXPECT_EQ((*work)->work.end_ns, 2'510'000'000);
}

TEST_F(TracksTest, StreamsFollowTheOrderOfGpus) {
  Add(model::kKernels, {KernelAt(kSecondGpu, 2'000'000'000, 2'500'000'000),
                        KernelAt(kFirstGpu, 2'000'000'000, 2'100'000'000)});
  Read(2 * kSecond, 3 * kSecond);
  ASSERT_EQ(tracks_.tracks.size(), 2U);
  EXPECT_EQ(tracks_.tracks[0].device, kFirstGpu);
  EXPECT_EQ(tracks_.tracks[1].device, kSecondGpu);
}

TEST_F(TracksTest, RangesNestAndThreadsAreApart) {
  const auto range = [](int32_t tid, int64_t from_ms, std::optional<int64_t> to_ms, const std::string& name) {
    return model::Range{
        .process = kTrains,
        .tid = tid,
        .start_ns = 2 * kSecond + from_ms * 1'000'000,
        .end_ns = to_ms.has_value() ? std::optional(2 * kSecond + *to_ms * 1'000'000) : std::nullopt,
        .kind = name == "aten::mm" ? "operator" : "annotation",
        .domain = "",
        .name = name};
  };
  Add(model::kRanges, {range(41, 10, 90, "forward"), range(41, 20, 30, "aten::mm"),
                       range(41, 30, 40, "aten::mm"), range(41, -500, 100, "step"),
                       range(43, 50, std::nullopt, "never ends"), range(41, 95, 99, "backward")});
  EXPECT_THAT(
      Read(2 * kSecond, 3 * kSecond),
      ElementsAre("ranges 43: never ends 2050+6950",
                  "ranges 41: step 1500+600 [1]forward 2010+80 [1]backward 2095+4 [2]aten::mm 2020+10 "
                  "[2]aten::mm 2030+10"));
}

TEST_F(TracksTest, StatesAreSummedToCells) {
  model::Signal running{.start_ns = 2 * kSecond,
                        .bucket_ns = 10'000'000,
                        .source = kSource,
                        .metric = "thread.running",
                        .process = kTrains,
                        .tid = 41,
                        .values = std::vector<int64_t>(100, 4'000'000)};
  model::Signal waits = running;
  waits.metric = "thread.waiting";
  waits.values = {6'000'000};
  model::Signal part = running;  // a part of waiting, which states don't show
  part.metric = "thread.network";
  Add(model::kSignals, {running, waits, part});
  // Finer than buckets: as they are.
  EXPECT_THAT(Read(2 * kSecond, 2 * kSecond + 20'000'000),
              ElementsAre("states 41: running 2000+10=4 waiting 2000+10=6 running 2010+10=4"));
  // Coarser: no time is lost between cells.
  Read(2 * kSecond, 3 * kSecond, {.columns = 10});
  int64_t running_ns = 0;
  for (const Slice& slice : tracks_.tracks.at(0).slices) {
    EXPECT_LE(slice.busy_ns, slice.length_ns);
    if (tracks_.names[static_cast<size_t>(slice.name)].text == "running") running_ns += slice.busy_ns;
  }
  EXPECT_EQ(running_ns, 400'000'000);
  EXPECT_LE(tracks_.tracks.at(0).slices.size(), 2 * 12U);
}

TEST_F(TracksTest, ImpossibleStatesDoNoHarm) {
  model::Signal running{.start_ns = 2 * kSecond,
                        .bucket_ns = 10'000'000,
                        .source = kSource,
                        .metric = "thread.running",
                        .process = kTrains,
                        .tid = 41,
                        .values = {4'000'000}};
  model::Signal longer = running;  // than its bucket
  longer.tid = 42;
  longer.values = {std::numeric_limits<int64_t>::max()};
  model::Signal endless = running;  // whose length is beyond 64 bits
  endless.tid = 43;
  endless.bucket_ns = int64_t{1} << 62;
  endless.values = {1, 1, 1, 1};
  model::Signal none = running;
  none.tid = 44;
  none.bucket_ns = 0;
  model::Signal empty = running;  // whose one bucket would end beyond 64 bits
  empty.tid = 45;
  empty.bucket_ns = std::numeric_limits<int64_t>::max();
  empty.values = {};
  Add(model::kSignals, {running, longer, endless, none, empty});
  EXPECT_THAT(Read(2 * kSecond, 2 * kSecond + 20'000'000),
              ElementsAre("states 42: running 2000+10=10", "states 41: running 2000+10=4"));
}

TEST_F(TracksTest, SamplesNameTheInnermostPythonFunction) {
  constexpr Id128 kPython{3, 1}, kNative{3, 2}, kLoads{4, 1}, kInflates{4, 2}, kBoth{5, 1}, kNativeOnly{5, 2};
  Add(model::kFunctions,
      {{.function = kLoads, .name = "load_batch"}, {.function = kInflates, .name = "inflate"}});
  Add(model::kLocations,
      {{.location = kPython, .kind = model::FrameKind::kPython, .functions = {kLoads}, .lines = {41}},
       {.location = kNative, .kind = model::FrameKind::kNative, .functions = {kInflates}, .lines = {0}}});
  Add(model::kStacks,
      {{.stack = kBoth, .locations = {kNative, kPython}}, {.stack = kNativeOnly, .locations = {kNative}}});
  const auto sample = [](int64_t at_ms, Id128 stack, int32_t tid = 41) {
    return model::Sample{.time_ns = 2 * kSecond + at_ms * 1'000'000,
                         .process = kTrains,
                         .tid = tid,
                         .stack = stack,
                         .state = model::ThreadState::kOnCpu,
                         .weight_ns = 10'000'000};
  };
  Add(model::kSamples, {sample(5, kBoth), sample(20, kNativeOnly), sample(1005, kBoth), sample(1020, kBoth),
                        sample(30, kBoth, 42)});
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond),
              ElementsAre("samples 41: load_batch 1995+10 inflate 2010+10 load_batch 2995+10"));
  EXPECT_THAT(Read(3'010'000'001, 4 * kSecond), ElementsAre("samples 41: load_batch 3010+10"));
  EXPECT_THAT(Read(3'020'000'000, 4 * kSecond), IsEmpty()) << "its sample is of the time before";
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond, {.columns = 1000, .helper_threads = true}),
              testing::Contains("samples 42: load_batch 2020+10"))
      << "a thread of gpusonde's";
}

TEST_F(TracksTest, ASelectionAppliesToWhatHasIt) {
  Add(model::kKernels, {KernelAt(kFirstGpu, 2'000'000'000, 2'100'000'000)});
  Add(model::kSteps,
      {{.process = kTrains, .ordinal = 3, .start_ns = 2 * kSecond, .end_ns = 2'100'000'000},
       {.process = kTrains, .tid = 44, .ordinal = 3, .start_ns = 2 * kSecond, .end_ns = 2'050'000'000},
       {.process = kServes, .ordinal = 4, .start_ns = 2 * kSecond, .end_ns = 2'200'000'000}});
  Add(model::kApiCalls, {{.process = kTrains,
                          .tid = 41,
                          .start_ns = 2 * kSecond,
                          .end_ns = 2'010'000'000,
                          .name = "cudaLaunchKernel"},
                         {.process = kTrains,
                          .tid = 44,
                          .start_ns = 2 * kSecond,
                          .end_ns = 2'010'000'000,
                          .name = "cudaMalloc"}});
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond),
              ElementsAre("stream 7: gemm 2000+100", "steps 0: step 3 2000+100", "steps 44: step 3 2000+50",
                          "calls 41: cudaLaunchKernel 2000+10", "calls 44: cudaMalloc 2000+10",
                          "steps 0: step 4 2000+200"));
  model::Selection selection;
  selection.processes = {kTrains};
  selection.tid = 44;
  selection.device = kSecondGpu;
  EXPECT_THAT(
      Read(2 * kSecond, 3 * kSecond, {.columns = 1000}, selection),
      ElementsAre("steps 0: step 3 2000+100", "steps 44: step 3 2000+50", "calls 44: cudaMalloc 2000+10"));
}

TEST_F(TracksTest, TooManyTracksAreCounted) {
  std::vector<model::ApiCall> calls;
  for (int i = 0; i < 250; ++i)
    calls.push_back({.process = kTrains,
                     .tid = 100 + i,
                     .start_ns = 2 * kSecond,
                     .end_ns = 2 * kSecond + (i + int64_t{1}) * 1'000'000,
                     .name = "cudaMalloc"});
  Add(model::kApiCalls, calls);
  Read(2 * kSecond, 3 * kSecond);
  EXPECT_EQ(tracks_.tracks.size(), 200U);
  EXPECT_EQ(tracks_.omitted, 50);
  EXPECT_EQ(tracks_.tracks[0].tid, 349) << "the one with most time first";
  EXPECT_EQ(tracks_.events, 250);
}

TEST_F(TracksTest, MoreEventsThanCanBeReadAreRefused) {
  model::Selection selection;
  selection.from_ns = kSecond;
  selection.to_ns = 4 * kSecond;
  // The second count makes a sum that doesn't fit into a BIGINT.
  for (const int64_t count : {kMaxTrackEvents + 1, std::numeric_limits<int64_t>::max()}) {
    Add(model::kKernelPacks, {{.process = kTrains,
                               .device = kFirstGpu,
                               .stream = 7,
                               .name = "gemm",
                               .start_ns = 2 * kSecond,
                               .end_ns = 3 * kSecond,
                               .count = count,
                               .offsets_ns = {1},
                               .durations_ns = {1},
                               .correlations = {1},
                               .graph_nodes = {}}});
    const auto refused = ReadTracks(*store_, selection, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message, HasSubstr("select a shorter time"));
  }
}

TEST_F(TracksTest, WhoWasNotProfiledIsNotIdle) {
  Add(model::kKernels, {KernelAt(kFirstGpu, 2'000'000'000, 2'010'000'000)});
  Read(5 * kSecond, 6 * kSecond);
  EXPECT_THAT(tracks_.users, IsEmpty()) << "without sessions all work is known";
  Add(model::kGpuSessions,
      {{.process = kTrains, .session = 1, .start_ns = 2 * kSecond, .end_ns = 3 * kSecond},
       {.process = kTrains, .session = 2, .start_ns = 5'500'000'000, .end_ns = 7 * kSecond}});
  Read(5 * kSecond, 6 * kSecond);
  EXPECT_THAT(tracks_.tracks, IsEmpty());
  ASSERT_EQ(tracks_.users.size(), 1U);
  EXPECT_EQ(tracks_.users[0].process, kTrains);
  EXPECT_EQ(tracks_.users[0].device, kFirstGpu);
  ASSERT_EQ(tracks_.users[0].observed.size(), 1U);
  EXPECT_EQ(tracks_.users[0].observed[0].from_ns, 5'500'000'000);
  EXPECT_EQ(tracks_.users[0].observed[0].to_ns, 6 * kSecond);
  EXPECT_EQ(tracks_.devices.size(), 1U);
  EXPECT_EQ(tracks_.processes.size(), 1U);
}

TEST_F(TracksTest, NothingIsNoTracks) {
  EXPECT_THAT(Read(2 * kSecond, 3 * kSecond), IsEmpty());
  EXPECT_THAT(Read(5, 5), IsEmpty());
}

TEST_F(TracksTest, WorkIsFoundWithItsLaunch) {
  model::Kernel kernel = KernelAt(kFirstGpu, 2'000'000'000, 2'010'000'000, "_Z4gemmv");
  kernel.static_shared_bytes = 100;
  kernel.dynamic_shared_bytes = 28;
  Add(model::kKernels, {kernel});
  const auto call = [](int32_t session, int64_t start_ns, std::string name) {
    return model::ApiCall{.process = kTrains,
                          .tid = 41,
                          .session = session,
                          .correlation = 5,
                          .start_ns = start_ns,
                          .end_ns = start_ns + 2'000,
                          .name = std::move(name)};
  };
  model::ApiCall driver = call(1, 1'999'990'500, "cuLaunchKernel");  // within the runtime's
  driver.end_ns = 1'999'991'500;
  Add(model::kApiCalls,
      {driver, call(1, 1'999'000'000, "before ids repeated"), call(1, 1'999'990'000, "cudaLaunchKernel"),
       call(2, 1'999'991'000, "of another session"), call(1, 2'100'000'000, "later")});
  const auto found = ReadLaunchedWork(*store_, {kTrains, kFirstGpu, 7, 2'000'000'000});
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->work.name, "gemm()");
  EXPECT_EQ((*found)->work.shared_bytes, 128);
  EXPECT_EQ((*found)->work.grid[1], 3);
  ASSERT_TRUE((*found)->launch.has_value());
  EXPECT_EQ((*found)->launch->name, "cudaLaunchKernel");
  EXPECT_EQ((*found)->launch->thread, "main");
  EXPECT_THAT((*found)->launch->stack, IsEmpty());
  const auto none = ReadLaunchedWork(*store_, {kTrains, kFirstGpu, 8, 2'000'000'000});
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->has_value());
}

TEST_F(TracksTest, ACopyIsFoundWithItsBytes) {
  Add(model::kMemcpys, {{.process = kTrains,
                         .device = kFirstGpu,
                         .stream = 7,
                         .start_ns = 2'020'000'000,
                         .end_ns = 2'030'000'000,
                         .bytes = 4096,
                         .kind = "htod",
                         .source_memory = "pageable",
                         .target_memory = "device"}});
  const auto found = ReadLaunchedWork(*store_, {kTrains, kFirstGpu, 7, 2'020'000'000});
  ASSERT_TRUE(found.has_value() && found->has_value());
  EXPECT_EQ((*found)->work.bytes, 4096);
  EXPECT_EQ((*found)->work.source_memory, "pageable");
  EXPECT_FALSE((*found)->launch.has_value());
}

}  // namespace
}  // namespace gpusonde::store
