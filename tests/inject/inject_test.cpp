// SPDX-License-Identifier: Apache-2.0
// The inject library in a child process (client.cpp) that reports through a socket.
#include <fmt/format.h>
#include <sys/inotify.h>

#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

uint64_t KernelCount(const Received& received) {
  return received.TotalOf(Total::Of::kKernel, "alpha").count +
         received.TotalOf(Total::Of::kKernel, "beta").count;
}

TEST(Inject, TotalsMatchWhatRan) {
  const Outcome outcome =
      RunWithSocket({"kernels=10001", "copies=77", "sets=33", "sync", "wait=50", "exit=7"});
  EXPECT_EQ(outcome.status, 7);
  EXPECT_EQ(outcome.printed, "");
  const Received& received = outcome.received;
  ASSERT_THAT(received.begins, SizeIs(1));
  ASSERT_THAT(received.ends, SizeIs(1));
  EXPECT_EQ(received.ends[0].reason, EndReason::kExit);
  EXPECT_EQ(received.TotalOf(Total::Of::kKernel, "alpha"),
            (Received::Sum{5001, 0, uint64_t{5001} * 2000, 0}));
  EXPECT_EQ(received.TotalOf(Total::Of::kKernel, "beta"), (Received::Sum{5000, 0, uint64_t{5000} * 5000, 0}));
  EXPECT_EQ(received.TotalOf(Total::Of::kMemcpy, "htod").count, 77U);
  EXPECT_EQ(received.TotalOf(Total::Of::kMemcpy, "htod").bytes, 77U * 65536);
  EXPECT_EQ(received.TotalOf(Total::Of::kMemset, "").count, 33U);
  EXPECT_THAT(received.kernels, SizeIs(10001));
  EXPECT_THAT(received.copies, SizeIs(77));
  EXPECT_THAT(received.sets, SizeIs(33));
  EXPECT_THAT(received.syncs, ::testing::Not(IsEmpty()));
  ExpectNothingLost(outcome.drops);
}

TEST(Inject, AKernelRecordHasTheValuesFromCupti) {
  const Outcome outcome = RunWithSocket({"kernels=1", "sync", "wait=50"});
  ASSERT_THAT(outcome.received.kernels, SizeIs(1));
  const Received::KernelOf& kernel = outcome.received.kernels[0];
  EXPECT_EQ(kernel.kernel_name, "alpha");
  EXPECT_EQ(kernel.device, 0U);
  EXPECT_EQ(kernel.grid_x, 16U);
  EXPECT_EQ(kernel.grid_y, 1U);
  EXPECT_EQ(kernel.block_x, 128);
  EXPECT_EQ(kernel.end_ns - kernel.start_ns, 2000);
  EXPECT_EQ(kernel.graph_node, 0U);
  ASSERT_THAT(outcome.received.calls, SizeIs(1));
  EXPECT_EQ(outcome.received.calls[0].correlation, kernel.correlation);
  EXPECT_EQ(outcome.received.calls[0].call_name, "cuLaunchKernel");
  EXPECT_EQ(outcome.received.calls[0].domain, "cuda_driver");
  EXPECT_FALSE(outcome.received.calls[0].stack_taken);
}

TEST(Inject, ARuntimeCallAndItsDriverCallAreReportedOnce) {
  const Outcome outcome = RunWithSocket({"runtime=100", "sync", "wait=50"});
  EXPECT_THAT(outcome.received.copies, SizeIs(100));
  ASSERT_THAT(outcome.received.calls, SizeIs(100));
  std::set<uint32_t> correlations;
  for (const Received::CallOf& call : outcome.received.calls) {
    EXPECT_EQ(call.probability, 1);
    EXPECT_EQ(call.call_name, "cudaMemcpyAsync");
    EXPECT_EQ(call.domain, "cuda_runtime");
    EXPECT_LE(call.start_ns, call.end_ns);
    correlations.insert(call.correlation);
  }
  EXPECT_THAT(correlations, SizeIs(100));
  for (const Memcpy& copy : outcome.received.copies) EXPECT_TRUE(correlations.contains(copy.correlation));
}

TEST(Inject, ThreadsShareTotalsAndAreSampledIndependently) {
  const Outcome outcome = RunWithSocket({"threads=4,80", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.received), 320U);
  std::map<int32_t, int> calls_by_thread;
  for (const Received::CallOf& call : outcome.received.calls) ++calls_by_thread[call.tid];
  EXPECT_THAT(calls_by_thread, SizeIs(4));
  for (const auto& [tid, calls] : calls_by_thread) EXPECT_EQ(calls, 80);
}

TEST(Inject, SamplesOfABusyThreadEstimateAllLaunches) {
  const Outcome outcome = RunWithSocket({"rate=20000,3", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.received), 60'000U);
  EXPECT_LT(outcome.received.calls.size(), 4000U);
  double estimate = 0;
  double variance = 0;
  for (const Received::CallOf& call : outcome.received.calls) {
    estimate += 1 / call.probability;
    variance += (1 - call.probability) / (call.probability * call.probability);
  }
  EXPECT_NEAR(estimate, 60'000, 5 * std::sqrt(variance));
}

TEST(Inject, GraphNodesLinkReplayedWorkToItsCapture) {
  const Outcome outcome = RunWithSocket({"graph=20,3", "sync", "wait=50"});
  EXPECT_EQ(KernelCount(outcome.received), 60U);
  std::map<uint64_t, GraphNode> nodes;
  for (const GraphNode& node : outcome.received.nodes) nodes[node.node] = node;
  EXPECT_THAT(nodes, SizeIs(40));
  EXPECT_THAT(outcome.received.nodes, SizeIs(40)) << "each is reported once";
  ASSERT_THAT(outcome.received.kernels, SizeIs(60));
  for (const Received::KernelOf& kernel : outcome.received.kernels) {
    ASSERT_TRUE(nodes.contains(kernel.graph_node));
    const GraphNode& ran = nodes[kernel.graph_node];
    ASSERT_TRUE(nodes.contains(ran.original_node));
    EXPECT_EQ(nodes[ran.original_node].original_node, 0U);
  }
  // CUPTI reports captured launches like others.
  const auto launches =
      std::ranges::count(outcome.received.calls, "cuGraphLaunch", &Received::CallOf::call_name);
  EXPECT_EQ(launches, 3);
}

TEST(Inject, RangesAreReported) {
  const Outcome outcome = RunWithSocket({"ranges=3"});
  EXPECT_THAT(outcome.received.ranges, ElementsAre("step 0", "step 1", "step 2"));
}

TEST(Inject, RangesOfWideCharactersHaveNoNameButAnEnd) {
  EXPECT_THAT(RunWithSocket({"kernels=1", "nested"}).received.ranges, ElementsAre("", "second", "outer"));
}

TEST(Inject, RangesOfThreadsThatHaveEndedTakeNoMemory) {
  const Outcome outcome = RunWithSocket({"kernels=1", "brief=5000"});
  EXPECT_THAT(outcome.received.ranges, SizeIs(5000));
  EXPECT_LT(std::atoi(outcome.printed.c_str()), 10) << "a page each are 20 MiB";
}

TEST(Inject, RangesLeaveErrnoAlone) { EXPECT_EQ(RunWithSocket({"kernels=1", "errno=1"}).printed, "0\n"); }

TEST(Inject, RangesLeaveErrnoAloneWhereTheConsumerIsSlow) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  Client client({"kernels=1", "errno=200000"}, {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::seconds(2));  // it reads nothing
  Received received;
  EXPECT_EQ(client.Finish(*events, received), 0);
  EXPECT_EQ(client.printed(), "0\n");
}

TEST(Inject, AnotherSubscriberIsLeftAloneAndReported) {
  const Outcome outcome = RunWithSocket({"subscribe", "kernels=100", "sync", "wait=300", "holder", "exit=3"});
  EXPECT_EQ(outcome.status, 3);
  EXPECT_THAT(outcome.received.begins, IsEmpty());
  EXPECT_THAT(outcome.received.kernels, IsEmpty());
  EXPECT_THAT(outcome.received.holders, ElementsAre("CUPTI for another tool"));
  EXPECT_EQ(outcome.printed, "held\n");
}

// What a program prints whose consumer disappears so long after its start, and that exits with status 4.
std::string PrintedWithoutConsumer(const std::vector<std::string>& steps,
                                   std::vector<std::string> variables = {},
                                   std::chrono::milliseconds profiled = std::chrono::milliseconds(1300)) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  EXPECT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  EXPECT_TRUE(inheritance.has_value());
  variables.push_back(inheritance->environment);
  Client client(steps, std::move(variables));
  inheritance->fd.Close();
  std::this_thread::sleep_for(profiled);
  Result<GpuEvents> other = GpuEvents::Create(SocketsOnly(), nullptr);
  EXPECT_TRUE(other.has_value());
  events = Fail(ErrorCode::kUnavailable, "gone");
  Received received;
  EXPECT_EQ(client.Finish(*other, received), 4);
  return client.printed();
}

struct Rival {
  const char* kind;  // of client.cpp
  const char* library;
  const char* target;  // where its calls go before the first one
  std::chrono::milliseconds relocation{0};
};

class InjectRival : public ::testing::TestWithParam<Rival> {
 protected:
  const std::string kind_ = GetParam().kind;
  const std::chrono::milliseconds profiled_ = std::chrono::milliseconds(1300) + GetParam().relocation;
};

TEST_P(InjectRival, GetsCupti) {
  // Libraries that are loaded while we are awake are found at the next tick.
  const Outcome outcome = RunWithSocket({"kernels=100", "sync", "wait=400", "load=" + kind_, "wait=600",
                                         "rival=" + kind_, "kernels=50", "sync", "wait=300", "holder"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "0\nheld\n");
  ASSERT_THAT(outcome.received.ends, SizeIs(1));
  EXPECT_EQ(outcome.received.ends[0].reason, EndReason::kForeign);
  EXPECT_THAT(outcome.received.holders, ElementsAre(GetParam().library));
  EXPECT_EQ(outcome.received.kernels.size(), 100U) << "what it ran before";
  EXPECT_EQ(KernelCount(outcome.received), 100U);
  ExpectNothingLost(outcome.drops);
}

TEST_P(InjectRival, IsRedirectedWhileWeAreAwake) {
  const std::string target = "target=" + kind_;
  EXPECT_EQ(PrintedWithoutConsumer({"kernels=10", "load=" + kind_, "wait=600", target, "wait=2000",
                                    "kernels=10", "sync", "wait=2000", target, "exit=4"},
                                   {}, profiled_),
            std::string("libgpusonde-inject.so\n") + GetParam().target + "\n");
}

// The program makes no call at which CUPTI could be finalized.
TEST_P(InjectRival, GetsCuptiThatIsStillToBeFinalized) {
  EXPECT_EQ(PrintedWithoutConsumer(
                {"load=" + kind_, "kernels=10", "sync", "wait=2000", "rival=" + kind_, "holder", "exit=4"},
                {}, profiled_),
            "0\nheld\n");
}

INSTANTIATE_TEST_SUITE_P(Bound, InjectRival,
                         ::testing::Values(Rival{"0", "librival_lazy.so", "librival_lazy.so"},
                                           Rival{"1", "librival_now.so", "libcupti.so.13"},
                                           Rival{"2", "librival_direct.so", "libcupti.so.13"},
                                           Rival{"3", "librival_lazy.so", "libcupti.so.13"}));

// The loader is still relocating them at several ticks.
constexpr std::chrono::milliseconds kSlowly(1200);
INSTANTIATE_TEST_SUITE_P(BoundSlowly, InjectRival,
                         ::testing::Values(Rival{"4", "librival_slow_lazy.so", "librival_slow_lazy.so",
                                                 kSlowly},
                                           Rival{"5", "librival_slow_now.so", "libcupti.so.13", kSlowly},
                                           Rival{"6", "librival_slow_lazy.so", "libcupti.so.13", kSlowly},
                                           Rival{"7", "librival_slow_direct.so", "libcupti.so.13", kSlowly}));

TEST(Inject, LeavesALibraryAloneThatIsLoadedInThePlaceOfARival) {
  const Outcome outcome = RunWithSocket({"kernels=100", "sync", "replace", "wait=600", "holder"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "replaced\nheld\n");
}

// Its constructor subscribes, within dlopen, while our thread looks at the first records of a device.
TEST(Inject, LeavesCuptiToALibraryThatIsBeingLoaded) {
  const Outcome outcome = RunWithSocket({"kernels=100", "load=8", "rival=8", "exit=4"});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(outcome.printed, "39\n") << "its own first subscription";
  EXPECT_THAT(outcome.received.holders, ElementsAre("librival_early.so"));
}

// Calls of CUPTI that take so long hang, as far as the tests below are concerned.
constexpr std::chrono::seconds kHanging(40);
std::string Hangs(const char* function, const char* of = "") {
  return fmt::format("SIMGPU_CUPTI_DELAY={}:{}{}", function, std::chrono::milliseconds(kHanging).count(), of);
}

class InjectHanging : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_LT(std::chrono::steady_clock::now() - begin_, kHanging / 2); }
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

TEST_F(InjectHanging, OurThreadHoldsUpNoRival) {
  const Outcome outcome = RunWithSocket({"kernels=10", "load=0", "wait=1500", "rival=0", "exit=4"},
                                        {Hangs("cuptiActivityFlushAll", "@4")});
  EXPECT_EQ(outcome.status, 4);
  EXPECT_EQ(outcome.printed, "39\n") << "CUPTI still serves us";
}

TEST_F(InjectHanging, FinalizingCuptiHoldsUpNoRival) {
  EXPECT_EQ(PrintedWithoutConsumer({"load=0", "kernels=10", "sync", "wait=600", "aside=500,60", "wait=2000",
                                    "rival=0", "exit=4"},
                                   {Hangs("cuptiFinalize")}),
            "39\n")
      << "CUPTI still serves us";
}

// The thread that it interrupts holds our lock: it is leaving CUPTI to the rival.
TEST_F(InjectHanging, AHandlerMayExitWhileCuptiIsLeft) {
  const Outcome outcome =
      RunWithSocket({"kernels=10", "load=0", "wait=1500", "alarm=1000,5", "rival=0", "exit=4"},
                    {Hangs("cuptiUnsubscribe")});
  EXPECT_EQ(outcome.status, 5);
}

TEST(Inject, LeavesCuptiAsSoonAsItCanToARivalThatDidNotWait) {
  const Outcome outcome =
      RunWithSocket({"kernels=10", "load=0", "wait=1500", "rival=0", "wait=4000", "rival=0"},
                    {"SIMGPU_CUPTI_DELAY=cuptiActivityFlushAll:5000@4"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "39\n0\n");
  ASSERT_THAT(outcome.received.ends, SizeIs(1));
  EXPECT_EQ(outcome.received.ends[0].reason, EndReason::kForeign);
  EXPECT_THAT(outcome.received.holders, ElementsAre(""));
  EXPECT_EQ(KernelCount(outcome.received), 10U);
}

TEST(Inject, DetachesWhenAnotherToolTakesTheBuffers) {
  const Outcome outcome =
      RunWithSocket({"kernels=10", "sync", "wait=300", "buffers", "rate=100,12", "wait=300", "holder"});
  EXPECT_EQ(outcome.status, 0);
  ASSERT_THAT(outcome.received.ends, SizeIs(1));
  EXPECT_EQ(outcome.received.ends[0].reason, EndReason::kForeign);
  EXPECT_THAT(outcome.received.holders, ElementsAre(""));
  EXPECT_EQ(outcome.printed, "free\n");
}

TEST(Inject, ACancelledThreadLeavesNothingLocked) {
  EXPECT_EQ(RunWithSocket({"kernels=1", "cancel=20", "exit=4"}).status, 4);
}

TEST(Inject, AForkedChildReportsNothingAndExitsNormally) {
  const Outcome outcome = RunWithSocket({"kernels=100", "fork", "kernels=100", "sync", "wait=50"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "child 0\n");
  EXPECT_EQ(KernelCount(outcome.received), 200U);
  EXPECT_THAT(outcome.received.pids, SizeIs(1));
}

TEST(Inject, AChildForkedByTheSystemCallAloneExitsAtOnce) {
  EXPECT_EQ(RunWithSocket({"kernels=100", "forkbare"}).printed, "child ended\n");
}

TEST(Inject, AForkedChildUsesNvtxLikeItsParent) {
  EXPECT_EQ(RunWithSocket({"nvtx=500"}).printed, "0 hung\n") << "the program doesn't use CUDA";
  EXPECT_EQ(RunWithSocket({"kernels=1", "nvtx=500"}).printed, "0 hung\n");
}

TEST(Inject, AForkedChildUsesThePluginForNcclLikeItsParent) {
  EXPECT_EQ(RunWithSocket({"join=1", "nccl=500"}).printed, "0 hung\n");
}

TEST(Inject, AnAbortingProgramDiesOfItsOwnSignal) {
  const Outcome outcome = RunWithSocket({"kernels=1000", "sync", "wait=600", "abort"});
  EXPECT_EQ(outcome.status, 128 + SIGABRT);
  EXPECT_THAT(outcome.received.kernels, SizeIs(1000));
  EXPECT_THAT(outcome.received.ends, IsEmpty());
}

TEST(Inject, RecordsBeforeAnAbruptExitAreReceived) {
  const Outcome outcome = RunWithSocket({"kernels=1000", "sync", "wait=600", "kernels=10", "_exit"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_GE(outcome.received.kernels.size(), 1000U);
}

TEST(Inject, WithoutConsumersNothingSubscribesToCupti) {
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Received received;
  Client client({"kernels=1000", "sync", "wait=600", "holder", "exit=4"}, {});
  EXPECT_EQ(client.Finish(*events, received), 4);
  EXPECT_EQ(client.printed(), "free\n");
}

// Of a CUDA runtime of a version whose CUPTI no machine has: a program that uses it has no CUPTI at first.
class WithoutCupti : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_symlink(GPUSONDE_TEST_PROGRAMS "/librival_relocation.so",
                                    runtime_ / "libcudart.so.99");
  }

  Outcome Run(const std::vector<std::string>& steps) {
    return RunWithSocket(steps, {"LD_PRELOAD=" + (runtime_ / "libcudart.so.99")});
  }

  TempFolder runtime_;
};

TEST_F(WithoutCupti, SearchesForItOnceNotEverySecond) {
  std::ofstream(runtime_ / "libcupti.so.99") << "not a library";
  const Fd opened(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(opened.get(), (runtime_ / "libcupti.so.99").c_str(), IN_OPEN | IN_CLOSE), 0);
  EXPECT_EQ(Run({"kernels=10", "wait=5000"}).status, 0);
  char events[4096];
  EXPECT_EQ(::read(opened.get(), events, sizeof events), static_cast<ssize_t>(2 * sizeof(inotify_event)));
}

TEST_F(WithoutCupti, SearchesForItAgainOnceALibraryWasLoaded) {
  const Outcome outcome = Run({"kernels=10", "wait=1500", "load=0", "wait=4000", "holder"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.printed, "held\n");
}

// A program that makes calls has CUPTI removed by the next one; others wait for the timeout, below.
TEST(Inject, FinalizesCuptiAtTheProgramsNextCall) {
  EXPECT_EQ(PrintedWithoutConsumer({"rate=500,3", "holder", "cupti", "exit=4"}), "free\nfinalized\n");
}

// The request to finalize it waits for the parent's next call.
TEST(Inject, AForkedChildDoesNotFinalizeCupti) {
  EXPECT_EQ(PrintedWithoutConsumer(
                {"kernels=10", "sync", "wait=1500", "kernels=1", "wait=500", "forklaunch", "exit=4"}),
            "initialized\n");
}

TEST(Inject, LeavesCuptiToProgramsWithGraphs) {
  EXPECT_EQ(PrintedWithoutConsumer({"replays=20,4", "holder", "cupti", "exit=4"}), "free\ninitialized\n");
}

// One launch decides, as it isn't known whether another one follows.
TEST(Inject, LeavesCuptiToProgramsThatHaveLaunchedAGraph) {
  EXPECT_EQ(PrintedWithoutConsumer({"graph=20,1", "sync", "rate=500,3", "holder", "cupti", "exit=4"}),
            "free\ninitialized\n");
}

TEST(Inject, LeavesCuptiBefore13) {
  EXPECT_EQ(PrintedWithoutConsumer({"rate=500,3", "holder", "cupti", "exit=4"},
                                   {"LD_PRELOAD=" GPUSONDE_SIMGPU_FOLDER "/libcupti.so.12"}),
            "free\ninitialized\n");
}

// The program sees no difference between a reader that closes its end and one that is killed.
TEST(Inject, UnsubscribesWhenItsConsumerDisappears) {
  EXPECT_EQ(
      PrintedWithoutConsumer({"kernels=10", "holder", "wait=3000", "kernels=10", "sync", "holder", "exit=4"},
                             {}, std::chrono::milliseconds(700)),
      "held\nfree\n");
}

TEST(Inject, ASlowConsumerLosesRecordsButNoTotals) {
  GPUSONDE_NOT_UNDER_TSAN("the program is too slow to outrun even this consumer");
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  Received received;
  Client client({"kernels=200000", "sync", "wait=2500"}, {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  EXPECT_EQ(client.Finish(*events, received), 0);
  events->Forget(client.pid());
  const model::DropCounts drops = events->DrainDrops();
  // Where our own thread gets no time, CUPTI runs out of buffers, and says so.
  const int64_t dropped = drops.Of(model::DropReason::kGpuRecordsDropped);
  EXPECT_EQ(static_cast<int64_t>(KernelCount(received)) + dropped, 200'000);
  // Missing records are counted; a batch holds about 100 kernels.
  const auto missing = 200'000 - dropped - static_cast<int64_t>(received.kernels.size());
  EXPECT_GT(missing, 0);
  EXPECT_GE(drops.Of(model::DropReason::kGpuMessagesLost) * 102, missing);
}

// Names of kernels whose module may have been unloaded are looked up by both threads.
TEST(Inject, LaunchesDoNotWaitForASlowConsumerOfNames) {
  GPUSONDE_NOT_UNDER_TSAN("the program is too slow to fill the socket");
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  Client client({"kernels=200000", "sync", "wait=3000", "names=100"}, {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::seconds(8));  // it reads nothing
  Received received;
  EXPECT_EQ(client.Finish(*events, received), 0);
  EXPECT_LT(std::atoi(client.printed().c_str()), 500) << "our thread waits for up to a second at a time";
}

// It crashes when it is refused a buffer. Our thread hangs while the program fills all of them, for four
// times what a busy machine took for that, and then has 25 seconds for the records: in ten, a busy one took
// 232,000.
TEST(Inject, GivesCuptiBefore12Dot9BuffersThatItOnlyCounts) {
  const Outcome outcome = RunWithSocket({"kernels=500000", "sync", "wait=45000", "exit=4"},
                                        {"LD_PRELOAD=" GPUSONDE_SIMGPU_FOLDER "/libcupti.so.12",
                                         "SIMGPU_CUPTI_DELAY=cuptiActivityGetNextRecord:20000@1"});
  EXPECT_EQ(outcome.status, 4);
  const int64_t dropped = outcome.drops.Of(model::DropReason::kGpuRecordsDropped);
  EXPECT_GT(dropped, 0);
  const int64_t records = static_cast<int64_t>(KernelCount(outcome.received)) + dropped;
  EXPECT_GE(records, 500'000);
  EXPECT_LE(records, 500'050) << "besides kernels a wait, and what flushes took";
}

TEST(Inject, TimesOfAnotherClockCountAsNone) {
  const Outcome outcome = RunWithSocket({"kernels=10000", "sync", "wait=600"}, {"SIMGPU_CUPTI_STALE=0.1"});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(KernelCount(outcome.received), 10'000U);
  for (const char* kernel : {"alpha", "beta"}) {
    const Received::Sum sum = outcome.received.TotalOf(Total::Of::kKernel, kernel);
    EXPECT_GT(sum.untimed, 400U);
    EXPECT_LT(sum.untimed, 600U);
    EXPECT_EQ(sum.total_ns, (sum.count - sum.untimed) * (kernel == std::string_view("alpha") ? 2000 : 5000));
  }
}

TEST(Inject, AReusedSocketDescriptorIsNotWrittenTo) {
  int pair[2];
  ASSERT_EQ(::pipe(pair), 0);
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Received received;
  Client client({"kernels=1000", "holder", "wait=6000", "holder"},
                {"GPUSONDE_INJECT_SOCKET=" + std::to_string(pair[1]) + ":1"});
  ::close(pair[1]);
  EXPECT_EQ(client.Finish(*events, received), 0);
  EXPECT_EQ(client.printed(), "held\nfree\n")
      << "it waits three seconds for its recorder to attach to the probes";
  char byte = 0;
  EXPECT_EQ(::read(pair[0], &byte, 1), 0);
  ::close(pair[0]);
}

}  // namespace
}  // namespace gpusonde::cupti
