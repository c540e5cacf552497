// SPDX-License-Identifier: Apache-2.0
// The inject library in a program of its own (client.cpp), heard through a socket.
#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(Inject, TotalsAndRecordsAreExactlyWhatRan) {
  const Outcome outcome = Hear({"start", "launch=10001", "copy=77", "set=33", "sync=5", "exit=7"});
  EXPECT_EQ(outcome.status, 7);
  const Heard& heard = outcome.heard;
  ASSERT_THAT(heard.begins, SizeIs(1));
  ASSERT_THAT(heard.ends, SizeIs(1));
  EXPECT_EQ(heard.ends[0].reason, EndReason::kExit);
  EXPECT_EQ(heard.TotalOf(Total::Of::kKernel, "first"), (Heard::Sum{5001, 0, 5001 * 1000, 0}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kKernel, "second"), (Heard::Sum{5000, 0, 5000 * 3000, 0}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kMemcpy, "htod"), (Heard::Sum{77, 0, 77 * 2000, 77 * 4096}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kMemset, ""), (Heard::Sum{33, 0, 33 * 700, 33 * 256}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kSync, "stream"), (Heard::Sum{5, 0, 500, 0}));
  EXPECT_THAT(heard.kernels, SizeIs(10001));
  EXPECT_THAT(heard.copies, SizeIs(77));
  EXPECT_THAT(heard.sets, SizeIs(33));
  EXPECT_THAT(heard.syncs, SizeIs(5));
  uint64_t total_ns = 0;
  for (const Heard::KernelOf& kernel : heard.kernels)
    total_ns += static_cast<uint64_t>(kernel.end_ns - kernel.start_ns);
  EXPECT_EQ(total_ns, 5001U * 1000 + 5000 * 3000);
  ExpectNothingLost(outcome.drops);
}

TEST(Inject, AKernelsRecordSaysWhatCuptiSaid) {
  const Outcome outcome = Hear({"start", "launch=1"});
  ASSERT_THAT(outcome.heard.kernels, SizeIs(1));
  const Heard::KernelOf& kernel = outcome.heard.kernels[0];
  EXPECT_EQ(kernel.kernel_name, "first");
  EXPECT_EQ(kernel.correlation, 1U);
  EXPECT_EQ(kernel.device, 0U);
  EXPECT_EQ(kernel.context, 1U);
  EXPECT_EQ(kernel.stream, 7U);
  EXPECT_EQ(kernel.grid_x, 128U);
  EXPECT_EQ(kernel.block_x, 256);
  EXPECT_EQ(kernel.registers, 40);
  EXPECT_EQ(kernel.end_ns - kernel.start_ns, 1000);
  EXPECT_EQ(kernel.graph_node, 0U);
}

TEST(Inject, ASlowThreadHasAllItsCallsAndNestedOnesAreNotCountedTwice) {
  const Outcome outcome = Hear({"start", "launch=100"});
  ASSERT_THAT(outcome.heard.calls, SizeIs(100));
  std::set<uint32_t> correlations;
  for (const Heard::CallOf& call : outcome.heard.calls) {
    EXPECT_EQ(call.probability, 1);
    EXPECT_EQ(call.call_name, "cudaLaunchKernel");
    EXPECT_LE(call.start_ns, call.end_ns);
    EXPECT_FALSE(call.stack_taken);
    correlations.insert(call.correlation);
  }
  EXPECT_THAT(correlations, SizeIs(100));
}

TEST(Inject, SeveralThreadsAreCountedTogetherAndSampledEachByItself) {
  const Outcome outcome = Hear({"start", "threads=4,200"});
  EXPECT_EQ(outcome.heard.TotalOf(Total::Of::kKernel, "threaded").count, 800U);
  std::map<int32_t, int> calls_by_thread;
  for (const Heard::CallOf& call : outcome.heard.calls) ++calls_by_thread[call.tid];
  EXPECT_THAT(calls_by_thread, SizeIs(4));
  for (const auto& [tid, calls] : calls_by_thread) EXPECT_EQ(calls, 200);
}

TEST(Inject, CorrelationIdsWrap) {
  const Outcome outcome = Hear({"start", "wrap", "launch=4"});
  std::vector<uint32_t> correlations;
  for (const Heard::KernelOf& kernel : outcome.heard.kernels) correlations.push_back(kernel.correlation);
  EXPECT_THAT(correlations, ElementsAre(0xfffffffe, 0xffffffff, 0, 1));
  EXPECT_THAT(outcome.heard.calls, SizeIs(4));
}

TEST(Inject, ARecordWithoutTimesIsCountedButNotTimed) {
  const Outcome outcome = Hear({"start", "untimed", "launch=3"});
  EXPECT_EQ(outcome.heard.TotalOf(Total::Of::kKernel, "first"), (Heard::Sum{2, 1, 1000, 0}));
  ASSERT_THAT(outcome.heard.kernels, SizeIs(3));
  EXPECT_EQ(outcome.heard.kernels[0].start_ns, 0);
  EXPECT_EQ(outcome.heard.kernels[0].end_ns, 0);
}

TEST(Inject, RecordsThatCuptiDroppedAreCounted) {
  const Outcome outcome = Hear({"start", "launch=1", "drop=12", "exit=0"});
  EXPECT_EQ(outcome.drops.Of(model::DropReason::kGpuRecordsDropped), 12);
}

TEST(Inject, GraphNodesLeadFromWhatRanToWhatWasCaptured) {
  const Outcome outcome = Hear({"start", "graph=20,3"});
  EXPECT_EQ(outcome.heard.TotalOf(Total::Of::kKernel, "node"), (Heard::Sum{60, 0, 60 * 400, 0}));
  std::map<uint64_t, GraphNode> nodes;
  for (const GraphNode& node : outcome.heard.nodes) nodes[node.node] = node;
  EXPECT_THAT(nodes, SizeIs(40));
  ASSERT_THAT(outcome.heard.kernels, SizeIs(60));
  for (const Heard::KernelOf& kernel : outcome.heard.kernels) {
    ASSERT_TRUE(nodes.contains(kernel.graph_node));
    const GraphNode& ran = nodes[kernel.graph_node];
    ASSERT_TRUE(nodes.contains(ran.original_node));
    EXPECT_EQ(nodes[ran.original_node].original_node, 0U);
  }
  // The launches of the graph are calls, its nodes are not.
  EXPECT_THAT(outcome.heard.calls, SizeIs(3));
  EXPECT_EQ(outcome.heard.calls[0].call_name, "cudaGraphLaunch");
}

TEST(Inject, RangesAreTold) {
  const Outcome outcome = Hear({"start", "ranges=3"});
  EXPECT_THAT(outcome.heard.ranges, ElementsAre("step 0", "step 1", "step 2"));
}

TEST(Inject, AnotherSubscriberIsLeftAloneAndNamed) {
  const Outcome outcome = Hear({"foreign=CUPTI for Nsight", "start", "launch=100", "state", "exit=3"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.heard.begins, IsEmpty());
  EXPECT_THAT(outcome.heard.kernels, IsEmpty());
  EXPECT_THAT(outcome.heard.holders, ElementsAre("CUPTI for Nsight"));
  EXPECT_EQ(outcome.printed, "state 1 0 0\n");
}

TEST(Inject, EveryErrorOfCuptiLeavesTheProgramAsItIs) {
  for (const int code : {1, 8, 15, 35, 999}) {
    const Outcome outcome =
        Hear({"fail=" + std::to_string(code), "start", "launch=100", "wait=600", "exit=9"});
    EXPECT_EQ(outcome.status, 9) << code;
    EXPECT_EQ(outcome.printed, "") << code;
    EXPECT_THAT(outcome.heard.kernels, IsEmpty()) << code;
  }
  // Also when it begins in the middle.
  const Outcome outcome = Hear({"start", "launch=100", "fail=999", "launch=100", "wait=600", "exit=9"});
  EXPECT_EQ(outcome.status, 9);
  EXPECT_EQ(outcome.printed, "");
}

TEST(Inject, AForkedChildSaysNothingAndEndsAsItShould) {
  const Outcome outcome = Hear({"start", "launch=100", "fork", "launch=100"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "child 0\n");
  EXPECT_EQ(outcome.heard.TotalOf(Total::Of::kKernel, "first").count, 100U);
  EXPECT_THAT(outcome.heard.pids, SizeIs(1));
}

TEST(Inject, AProgramThatAbortsDiesOfItsOwnSignal) {
  const Outcome outcome = Hear({"start", "launch=1000", "wait=600", "abort"});
  EXPECT_EQ(outcome.status, 128 + SIGABRT);
  EXPECT_THAT(outcome.heard.kernels, SizeIs(1000));
  EXPECT_THAT(outcome.heard.ends, IsEmpty());
}

TEST(Inject, WhatCameBeforeAnAbruptExitIsThere) {
  const Outcome outcome = Hear({"start", "launch=1000", "wait=600", "launch=10", "_exit"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.heard.kernels, SizeIs(1000));
}

TEST(Inject, NobodyListeningMeansNothingOfOursIsKnownToCupti) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Heard heard;
  Client client({"start", "launch=1000", "wait=600", "state", "exit=4"}, {});
  EXPECT_EQ(client.Finish(*events, heard), 4);
  EXPECT_EQ(client.printed(), "state 0 0 0\n");
}

TEST(Inject, AListenerThatGoesAwayPutsItToSleep) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  Heard heard;
  Client client({"start", "launch=10", "state", "wait=3000", "launch=10", "state", "exit=4"},
                {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  Result<GpuEvents> other = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(other.has_value());
  events = Fail(ErrorCode::kUnavailable, "gone");
  EXPECT_EQ(client.Finish(*other, heard), 4);
  EXPECT_THAT(client.printed(), ::testing::MatchesRegex("state 1 6 [0-9]+\nstate 0 0 0\n"));
}

TEST(Inject, ASocketNumberThatMeansSomethingElseNowIsNotWrittenTo) {
  int pair[2];
  ASSERT_EQ(::pipe(pair), 0);
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Heard heard;
  Client client({"start", "launch=1000", "state"},
                {"GPUSONDE_INJECT_SOCKET=" + std::to_string(pair[1]) + ":1"});
  ::close(pair[1]);
  EXPECT_EQ(client.Finish(*events, heard), 0);
  EXPECT_EQ(client.printed(), "state 0 0 0\n");
  char byte = 0;
  EXPECT_EQ(::read(pair[0], &byte, 1), 0);
  ::close(pair[0]);
}

}  // namespace
}  // namespace gpusonde::cupti
