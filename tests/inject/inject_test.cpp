// SPDX-License-Identifier: Apache-2.0
// The inject library in a program of its own (client.cpp), heard through a socket.
#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

uint64_t KernelCount(const HasListeners& heard) {
  return heard.TotalOf(Total::Of::kKernel, "alpha").count + heard.TotalOf(Total::Of::kKernel, "beta").count;
}

TEST(Inject, TotalsAreExactlyWhatRan) {
  const Outcome outcome = Hear({"kernels=10001", "copies=77", "sets=33", "sync", "wait=50", "exit=7"});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(outcome.printed, "");
  const HasListeners& heard = outcome.heard;
  ASSERT_THAT(heard.begins, SizeIs(1));
  ASSERT_THAT(heard.ends, SizeIs(1));
  EXPECT_EQ(heard.ends[0].reason, EndReason::kExit);
  EXPECT_EQ(heard.TotalOf(Total::Of::kKernel, "alpha"),
            (HasListeners::Sum{5001, 0, uint64_t{5001} * 2000, 0}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kKernel, "beta"),
            (HasListeners::Sum{5000, 0, uint64_t{5000} * 5000, 0}));
  EXPECT_EQ(heard.TotalOf(Total::Of::kMemcpy, "htod").count, 77U);
  EXPECT_EQ(heard.TotalOf(Total::Of::kMemcpy, "htod").bytes, 77U * 65536);
  EXPECT_EQ(heard.TotalOf(Total::Of::kMemset, "").count, 33U);
  EXPECT_THAT(heard.kernels, SizeIs(10001));
  EXPECT_THAT(heard.copies, SizeIs(77));
  EXPECT_THAT(heard.sets, SizeIs(33));
  EXPECT_THAT(heard.syncs, ::testing::Not(IsEmpty()));
  ExpectNothingLost(outcome.drops);
}

TEST(Inject, AKernelsRecordSaysWhatCuptiSaid) {
  const Outcome outcome = Hear({"kernels=1", "sync", "wait=50"});
  ASSERT_THAT(outcome.heard.kernels, SizeIs(1));
  const HasListeners::KernelOf& kernel = outcome.heard.kernels[0];
  EXPECT_EQ(kernel.kernel_name, "alpha");
  EXPECT_EQ(kernel.device, 0U);
  EXPECT_EQ(kernel.grid_x, 16U);
  EXPECT_EQ(kernel.grid_y, 1U);
  EXPECT_EQ(kernel.block_x, 128);
  EXPECT_EQ(kernel.end_ns - kernel.start_ns, 2000);
  EXPECT_EQ(kernel.graph_node, 0U);
  ASSERT_THAT(outcome.heard.calls, SizeIs(1));
  EXPECT_EQ(outcome.heard.calls[0].correlation, kernel.correlation);
  EXPECT_EQ(outcome.heard.calls[0].call_name, "cuLaunchKernel");
  EXPECT_EQ(outcome.heard.calls[0].domain, "cuda_driver");
  EXPECT_FALSE(outcome.heard.calls[0].stack_taken);
}

TEST(Inject, ACallOfTheRuntimeIsOneCallThoughItCallsTheDriver) {
  const Outcome outcome = Hear({"runtime=100", "sync", "wait=50"});
  EXPECT_THAT(outcome.heard.copies, SizeIs(100));
  ASSERT_THAT(outcome.heard.calls, SizeIs(100));
  std::set<uint32_t> correlations;
  for (const HasListeners::CallOf& call : outcome.heard.calls) {
    EXPECT_EQ(call.probability, 1);
    EXPECT_EQ(call.call_name, "cudaMemcpyAsync");
    EXPECT_EQ(call.domain, "cuda_runtime");
    EXPECT_LE(call.start_ns, call.end_ns);
    correlations.insert(call.correlation);
  }
  EXPECT_THAT(correlations, SizeIs(100));
  for (const Memcpy& copy : outcome.heard.copies) EXPECT_TRUE(correlations.contains(copy.correlation));
}

TEST(Inject, SeveralThreadsAreCountedTogetherAndSampledEachByItself) {
  const Outcome outcome = Hear({"threads=4,80", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.heard), 320U);
  std::map<int32_t, int> calls_by_thread;
  for (const HasListeners::CallOf& call : outcome.heard.calls) ++calls_by_thread[call.tid];
  EXPECT_THAT(calls_by_thread, SizeIs(4));
  for (const auto& [tid, calls] : calls_by_thread) EXPECT_EQ(calls, 80);
}

TEST(Inject, ABusyThreadIsSampledAndItsSamplesStandForAll) {
  const Outcome outcome = Hear({"rate=20000,3", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.heard), 60'000U);
  EXPECT_LT(outcome.heard.calls.size(), 4000U);
  double estimate = 0;
  double variance = 0;
  for (const HasListeners::CallOf& call : outcome.heard.calls) {
    estimate += 1 / call.probability;
    variance += (1 - call.probability) / (call.probability * call.probability);
  }
  EXPECT_NEAR(estimate, 60'000, 5 * std::sqrt(variance));
}

TEST(Inject, GraphNodesLeadFromWhatRanToWhatWasCaptured) {
  const Outcome outcome = Hear({"graph=20,3", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.heard), 60U);
  std::map<uint64_t, GraphNode> nodes;
  for (const GraphNode& node : outcome.heard.nodes) nodes[node.node] = node;
  EXPECT_THAT(nodes, SizeIs(40));
  ASSERT_THAT(outcome.heard.kernels, SizeIs(60));
  for (const HasListeners::KernelOf& kernel : outcome.heard.kernels) {
    ASSERT_TRUE(nodes.contains(kernel.graph_node));
    const GraphNode& ran = nodes[kernel.graph_node];
    ASSERT_TRUE(nodes.contains(ran.original_node));
    EXPECT_EQ(nodes[ran.original_node].original_node, 0U);
  }
  // The launches of the graph put work on the device; so do, as far as CUPTI knows, those that were captured.
  const auto launches =
      std::ranges::count(outcome.heard.calls, "cuGraphLaunch", &HasListeners::CallOf::call_name);
  EXPECT_EQ(launches, 3);
}

TEST(Inject, RangesAreTold) {
  const Outcome outcome = Hear({"ranges=3"});
  EXPECT_THAT(outcome.heard.ranges, ElementsAre("step 0", "step 1", "step 2"));
}

TEST(Inject, AnotherSubscriberIsLeftAloneAndNamed) {
  const Outcome outcome = Hear({"subscribe", "kernels=100", "sync", "wait=300", "holder", "exit=3"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.heard.begins, IsEmpty());
  EXPECT_THAT(outcome.heard.kernels, IsEmpty());
  EXPECT_THAT(outcome.heard.holders, ElementsAre("CUPTI for another tool"));
  EXPECT_EQ(outcome.printed, "held\n");
}

TEST(Inject, LeavesWhenAnotherToolTakesTheRecords) {
  const Outcome outcome =
      Hear({"kernels=10", "sync", "wait=300", "buffers", "rate=100,12", "wait=300", "holder"});
  EXPECT_EQ(outcome.status, 0);
  ASSERT_THAT(outcome.heard.ends, SizeIs(1));
  EXPECT_EQ(outcome.heard.ends[0].reason, EndReason::kForeign);
  EXPECT_THAT(outcome.heard.holders, ElementsAre(""));
  EXPECT_EQ(outcome.printed, "free\n");
}

TEST(Inject, AForkedChildSaysNothingAndEndsAsItShould) {
  const Outcome outcome = Hear({"kernels=100", "fork", "kernels=100", "sync", "wait=50"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "child 0\n");
  EXPECT_EQ(KernelCount(outcome.heard), 200U);
  EXPECT_THAT(outcome.heard.pids, SizeIs(1));
}

TEST(Inject, AProgramThatAbortsDiesOfItsOwnSignal) {
  const Outcome outcome = Hear({"kernels=1000", "sync", "wait=600", "abort"});
  EXPECT_EQ(outcome.status, 128 + SIGABRT);
  EXPECT_THAT(outcome.heard.kernels, SizeIs(1000));
  EXPECT_THAT(outcome.heard.ends, IsEmpty());
}

TEST(Inject, WhatCameBeforeAnAbruptExitIsThere) {
  const Outcome outcome = Hear({"kernels=1000", "sync", "wait=600", "kernels=10", "_exit"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_GE(outcome.heard.kernels.size(), 1000U);
}

TEST(Inject, NobodyListeningMeansNothingOfOursIsKnownToCupti) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  HasListeners heard;
  Client client({"kernels=1000", "sync", "wait=600", "holder", "exit=4"}, {});
  EXPECT_EQ(client.Finish(*events, heard), 4);
  EXPECT_EQ(client.printed(), "free\n");
}

// Whether the reader closes its end or is killed, the program sees no difference: its socket has nobody at
// the other end.
TEST(Inject, AListenerThatGoesAwayPutsItToSleep) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  HasListeners heard;
  Client client({"kernels=10", "holder", "wait=3000", "kernels=10", "sync", "holder", "exit=4"},
                {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::milliseconds(700));
  Result<GpuEvents> other = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(other.has_value());
  events = Fail(ErrorCode::kUnavailable, "gone");
  EXPECT_EQ(client.Finish(*other, heard), 4);
  EXPECT_EQ(client.printed(), "held\nfree\n");
}

TEST(Inject, AListenerThatIsSlowLosesRecordsAndNoTotals) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  HasListeners heard;
  Client client({"kernels=200000", "sync", "wait=2500"}, {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(client.Finish(*events, heard), 0);
  events->Forget(client.pid());
  const model::DropCounts drops = events->DrainDrops();
  // Where our own thread gets no time, CUPTI runs out of buffers, and says so.
  const int64_t dropped = drops.Of(model::DropReason::kGpuRecordsDropped);
  EXPECT_EQ(static_cast<int64_t>(KernelCount(heard)) + dropped, 200'000);
  // What is missing is known to be missing; a batch holds about 100 kernels.
  const auto missing = 200'000 - dropped - static_cast<int64_t>(heard.kernels.size());
  EXPECT_GT(missing, 0);
  EXPECT_GE(drops.Of(model::DropReason::kGpuMessagesLost) * 102, missing);
}

TEST(Inject, ASocketNumberThatMeansSomethingElseNowIsNotWrittenTo) {
  int pair[2];
  ASSERT_EQ(::pipe(pair), 0);
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  HasListeners heard;
  Client client({"kernels=1000", "holder", "wait=2000", "holder"},
                {"GPUSONDE_INJECT_SOCKET=" + std::to_string(pair[1]) + ":1"});
  ::close(pair[1]);
  EXPECT_EQ(client.Finish(*events, heard), 0);
  EXPECT_EQ(client.printed(), "held\nfree\n")
      << "for a second it expects its recorder to attach to the probes";
  char byte = 0;
  EXPECT_EQ(::read(pair[0], &byte, 1), 0);
  ::close(pair[0]);
}

}  // namespace
}  // namespace gpusonde::cupti
