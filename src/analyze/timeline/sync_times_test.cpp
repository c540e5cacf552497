// SPDX-License-Identifier: Apache-2.0
#include "analyze/timeline/sync_times.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "analyze/archive.h"
#include "analyze/sync_calls.h"
#include "analyze/timeline/process_timeline.h"
#include "analyze/trace_state.h"

namespace gpusonde::analyze {
namespace {

using importers::ApiCall;
using importers::GpuEvent;

constexpr const char* kNames[] = {"gemm", "cudaStreamSynchronize", "cudaMemcpy", "cudaLaunchKernel",
                                  "cuStreamSynchronize"};
constexpr uint32_t kSync = 1, kCopy = 2, kLaunch = 3, kDriverSync = 4;

struct SyncTrace {
  std::vector<GpuEvent> events;
  std::vector<ApiCall> calls;
  std::vector<importers::Range> steps = {};
};

TraceState StateOf(SyncTrace trace) {
  TraceState state;
  for (const char* const name : kNames) state.Name(name);
  const uint32_t label = state.Label("ProfilerStep#1");
  for (importers::Range& step : trace.steps) step.label = label;
  state.Gpu(trace.events);
  state.Api(trace.calls);
  state.Ranges(trace.steps);
  return state;
}

std::vector<RankResult> Follow(SyncTrace trace) {
  TraceState state = StateOf(std::move(trace));
  EXPECT_TRUE(state.Finish().has_value());
  return FollowProcesses(state, 1).value();
}

std::map<std::pair<uint32_t, uint32_t>, SyncSum> RowsOf(const RankSyncs& syncs) {
  std::map<std::pair<uint32_t, uint32_t>, SyncSum> rows;
  for (const SyncRow& row : syncs.rows) rows[{row.name, row.thread}] = row.sum;
  return rows;
}

// The device is busy from 100 to 300, of which 50 ns are of two streams at once, and from 400 to 450.
const std::vector<GpuEvent> kWork = {{.start_ns = 100, .end_ns = 250},
                                     {.start_ns = 200, .end_ns = 300, .stream = 1},
                                     {.start_ns = 400, .end_ns = 450}};

TEST(SyncTimes, AWaitIsBusyWhileTheDeviceIs) {
  const auto rows =
      RowsOf(Follow({.events = kWork,
                     .calls = {{.start_ns = 50, .end_ns = 120, .name = kSync, .thread = 7},
                               {.start_ns = 220, .end_ns = 420, .name = kSync, .thread = 7},
                               {.start_ns = 310, .end_ns = 390, .name = kCopy, .thread = 8},
                               {.start_ns = 440, .end_ns = 540, .name = kSync, .thread = 8},
                               {.start_ns = 330, .end_ns = 331, .name = kLaunch, .thread = 9}}})[0]
                 .syncs);
  ASSERT_EQ(rows.size(), 3u);
  const SyncSum& on_7 = rows.at({kSync, 7});
  EXPECT_EQ(on_7.count, 2);
  EXPECT_EQ(on_7.total_ns, 70 + 200);
  EXPECT_EQ(on_7.busy_ns, 20 + 80 + 20);
  EXPECT_EQ(rows.at({kCopy, 8}).total_ns, 80);
  EXPECT_EQ(rows.at({kCopy, 8}).busy_ns, 0);
  EXPECT_EQ(rows.at({kSync, 8}).total_ns, 100);
  EXPECT_EQ(rows.at({kSync, 8}).busy_ns, 10);
}

TEST(SyncTimes, ACallWithinAnotherOfItsThreadCountsOnce) {
  for (const bool driver_first : {false, true}) {
    SyncTrace trace{.events = kWork,
                    .calls = {{.start_ns = 100, .end_ns = 200, .name = kSync, .thread = 1},
                              {.start_ns = 110, .end_ns = 190, .name = kDriverSync, .thread = 1},
                              {.start_ns = 110, .end_ns = 190, .name = kDriverSync, .thread = 2},
                              // With the same times: one of them, whichever comes first.
                              {.start_ns = 300, .end_ns = 400, .name = kSync, .thread = 1},
                              {.start_ns = 300, .end_ns = 400, .name = kDriverSync, .thread = 1}}};
    if (driver_first) std::swap(trace.calls[3], trace.calls[4]);
    int64_t count = 0, total_ns = 0;
    const auto rows = RowsOf(Follow(trace)[0].syncs);
    for (const auto& [key, sum] : rows) {
      count += sum.count;
      total_ns += sum.total_ns;
    }
    EXPECT_EQ(count, 3);
    EXPECT_EQ(total_ns, 100 + 80 + 100);
    const uint32_t kept =
        NameTable::HashOf(kNames[kSync]) < NameTable::HashOf(kNames[kDriverSync]) ? kSync : kDriverSync;
    EXPECT_EQ(rows.at({kept, 1}).count, kept == kSync ? 2 : 1);
  }
}

TEST(SyncTimes, CallsBelongToTheStepInWhichTheyBegan) {
  SyncTrace trace{.events = kWork,
                  .calls = {{.start_ns = 10, .end_ns = 20, .name = kSync},
                            {.start_ns = 190, .end_ns = 260, .name = kSync},
                            {.start_ns = 410, .end_ns = 415, .name = kSync},
                            {.start_ns = 500, .end_ns = 600, .name = kSync}},
                  .steps = {{.start_ns = 100, .end_ns = 200},
                            {.start_ns = 200, .end_ns = 400},
                            {.start_ns = 400, .end_ns = 500}}};
  const RankSyncs syncs = Follow(trace)[0].syncs;
  ASSERT_EQ(syncs.steps.size(), 3u);
  EXPECT_EQ(syncs.steps[0].total_ns, 70);
  EXPECT_EQ(syncs.steps[0].busy_ns, 70);
  EXPECT_EQ(syncs.steps[1].count, 0);
  EXPECT_EQ(syncs.steps[2].total_ns, 5);
}

TEST(SyncTimes, EachDeviceOfAProcessIsComparedWithAllOfItsCalls) {
  const auto ranks = Follow(
      {.events = {{.start_ns = 0, .end_ns = 100, .device = 0}, {.start_ns = 50, .end_ns = 70, .device = 1}},
       .calls = {{.start_ns = 40, .end_ns = 90, .name = kSync}}});
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].syncs.rows.at(0).sum.busy_ns, 50);
  EXPECT_EQ(ranks[1].syncs.rows.at(0).sum.busy_ns, 20);
}

TEST(SyncTimes, MoreThreadsThanAreFollowedAreCounted) {
  SyncTrace trace{.events = kWork, .calls = {}};
  for (uint32_t thread = 0; thread < SyncFollower::kMaxOpen + 3; ++thread)
    trace.calls.push_back({.start_ns = 100, .end_ns = 150, .name = kSync, .thread = thread});
  const RankSyncs syncs = Follow(trace)[0].syncs;
  EXPECT_EQ(syncs.beyond_bound, 3);
  EXPECT_EQ(syncs.rows.size(), SyncFollower::kMaxOpen);
}

TEST(SyncTimes, SumsBeyondTheBoundAreTogether) {
  SyncTrace trace{.events = kWork, .calls = {}};
  constexpr int64_t kThreads = 10'000;
  for (int64_t thread = 0; thread < kThreads; ++thread)
    trace.calls.push_back({.start_ns = 1'000 + 10 * thread,
                           .end_ns = 1'007 + 10 * thread,
                           .name = kSync,
                           .thread = static_cast<uint32_t>(thread)});
  const RankSyncs syncs = Follow(trace)[0].syncs;
  EXPECT_EQ(syncs.rows.size(), RankSyncs::kMaxRows);
  EXPECT_EQ(syncs.others.count, kThreads - static_cast<int64_t>(RankSyncs::kMaxRows));
  EXPECT_EQ(syncs.others.total_ns, 7 * syncs.others.count);
}

// Two threads that read parts of a trace number its names differently.
TEST(SyncTimes, PartsThatNumberNamesDifferentlyGiveTheSameTimes) {
  const std::vector<ApiCall> calls = {{.start_ns = 100, .end_ns = 220, .name = kSync, .thread = 1},
                                      {.start_ns = 240, .end_ns = 410, .name = kCopy, .thread = 1}};
  TraceState whole = StateOf({.events = kWork, .calls = calls});
  TraceState first = StateOf({.events = kWork, .calls = {calls[1]}});
  TraceState second;
  ApiCall other = calls[0];
  other.name = second.Name(kNames[kSync]);
  EXPECT_NE(other.name, kSync);
  second.Api({{other}});
  first.Merge(std::move(second));
  ASSERT_TRUE(whole.Finish().has_value());
  ASSERT_TRUE(first.Finish().has_value());
  const auto follow = [](const TraceState& state) {
    return RowsOf(FollowProcesses(state, 1).value()[0].syncs);
  };
  const auto expected = follow(whole);
  const auto merged = follow(first);
  ASSERT_EQ(merged.size(), 2u);
  for (const auto& [key, sum] : expected) {
    EXPECT_EQ(merged.at(key).busy_ns, sum.busy_ns);
    EXPECT_EQ(merged.at(key).total_ns, sum.total_ns);
  }
  EXPECT_EQ(expected.at({kSync, 1}).busy_ns, 120);
  EXPECT_EQ(expected.at({kCopy, 1}).busy_ns, 60 + 10);
}

TEST(SyncCalls, AreSynchronisingCallsAndBlockingCopies) {
  for (const char* const name : {"cudaDeviceSynchronize", "cudaStreamSynchronize_v3020", "cuCtxSynchronize",
                                 "hipEventSynchronize", "cudaMemcpy", "cuMemcpyDtoH_v2"})
    EXPECT_TRUE(IsSyncCall(name)) << name;
  for (const char* const name : {"cudaMemcpyAsync", "cudaLaunchKernel", "cudaEventQuery",
                                 "cuMemcpyDtoHAsync_v2", "cudaStreamWaitEvent", ""})
    EXPECT_FALSE(IsSyncCall(name)) << name;
}

}  // namespace
}  // namespace gpusonde::analyze
