// SPDX-License-Identifier: Apache-2.0
#include "diagnose/critical_path.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "base/testing/units.h"
#include "base/time.h"
#include "diagnose/testing/times.h"

namespace gpusonde::diagnose {
namespace {

constexpr int64_t kBucket = 10 * kNanosPerMilli;

// Ranks of one job, each with one launch thread; the first one is the program that is accounted for.
struct CriticalPathTest : testing::Test {
  static Id128 Rank(uint64_t number) { return {7, number}; }
  static int32_t Tid(uint64_t number) { return 100 + static_cast<int32_t>(number); }

  void AddRanks(uint64_t count) {
    program.process = Rank(0);
    program.launch_thread = Tid(0);
    program.family = {Rank(0)};
    for (uint64_t rank = 1; rank < count; ++rank) {
      program.launch_threads[Rank(rank)] = Tid(rank);
      program.ranks.insert(Rank(rank));
    }
  }

  // Adds it to the first bucket.
  void AddSignal(uint64_t rank, const std::string& metric, double ns,
                 std::optional<Id128> other = std::nullopt) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = Rank(rank),
                              .tid = Tid(rank),
                              .other = other,
                              .values = {static_cast<int64_t>(ns)}});
  }

  // The same of another thread of the program.
  void AddSignalOfOther(const std::string& metric, double ns) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = Rank(0),
                              .tid = 555,
                              .values = {static_cast<int64_t>(ns)}});
  }

  PathAccount Account(const GpuWork& gpu = {}) const {
    return AccountFor(program, host, gpu, {kBegin, kBegin + kBucket});
  }

  Program program;
  HostTimeline host;
};

// The step before ends with a wait for the GPU in the middle of a bucket.
TEST_F(CriticalPathTest, AStepHasNoPartOfAWaitForTheGpuThatEndedAtItsStart) {
  AddRanks(1);
  AddSignal(0, "thread.sleeping", 6 * kMs);
  AddSignal(0, "thread.running", 2 * kMs);
  AddSignal(0, "thread.run_queue", 2 * kMs);
  const int64_t border = kBegin + 6 * kNanosPerMilli;
  const GpuWork gpu{.kernels = {{kBegin, border}}, .copies = {}, .syncs = {{kBegin, border}}};
  const PathAccount before = AccountFor(program, host, gpu, {kBegin, border});
  EXPECT_NEAR(before.states[State::kGpuRun], 6 * kMs, 1);
  EXPECT_NEAR(before.states.total(), 6 * kMs, 1);
  const PathAccount after = AccountFor(program, host, gpu, {border, kBegin + kBucket});
  EXPECT_NEAR(after.states[State::kCpu], 2 * kMs, 1);
  EXPECT_NEAR(after.states[State::kRunQueue], 2 * kMs, 1);
  EXPECT_NEAR(after.states.total(), 4 * kMs, 1);
}

// A program that polls runs while it waits.
TEST_F(CriticalPathTest, AWaitForTheGpuInPartOfABucketCoversOnlyItsShareOfEachState) {
  AddRanks(1);
  AddSignal(0, "thread.sleeping", 2 * kMs);
  AddSignal(0, "thread.running", 8 * kMs);
  const int64_t middle = kBegin + kBucket / 2;
  const TimeRange wait{kBegin + 2 * kNanosPerMilli, kBegin + 8 * kNanosPerMilli};
  const GpuWork gpu{.kernels = {wait}, .copies = {}, .syncs = {wait}};
  for (const TimeRange& half : {TimeRange{kBegin, middle}, {middle, kBegin + kBucket}}) {
    const PathAccount account = AccountFor(program, host, gpu, half);
    EXPECT_NEAR(account.states[State::kGpuRun], 3 * kMs, 1);
    EXPECT_NEAR(account.states[State::kCpu], 2 * kMs, 1);
    EXPECT_NEAR(account.states.total(), 5 * kMs, 1);
  }
}

TEST_F(CriticalPathTest, TimeBelongsToTheLastRankOfAChain) {
  AddRanks(3);
  const Id128 stranger{8, 8};
  AddSignal(0, "thread.network", 10 * kMs, Rank(1));
  AddSignal(1, "thread.waiting", 10 * kMs, Rank(2));
  AddSignal(2, "thread.running", 4 * kMs);
  AddSignal(2, "thread.run_queue", 6 * kMs, stranger);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kPeer], 10 * kMs, 1);
  ASSERT_EQ(account.ranks.size(), 1u);
  const RankAccount& last = account.ranks.at(Rank(2));
  EXPECT_NEAR(last.states[State::kCpu], 4 * kMs, 1);
  EXPECT_NEAR(last.states[State::kRunQueue], 6 * kMs, 1);
  EXPECT_NEAR(last.behind.at(stranger), 6 * kMs, 1);
}

// Threads of the program wait for each other on one CPU while another program has the other one.
TEST_F(CriticalPathTest, DelayBehindItselfBelongsToWhoeverTookTheOtherCpus) {
  AddRanks(1);
  const Id128 stranger{8, 8}, another{8, 9};
  AddSignal(0, "thread.run_queue", 4 * kMs, Rank(0));
  AddSignal(0, "thread.run_queue", 1 * kMs, stranger);
  AddSignal(0, "thread.displaced", 2 * kMs, stranger);
  AddSignal(0, "thread.displaced", 1 * kMs, another);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kRunQueueOwn], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kRunQueue], 4 * kMs, 1);
  EXPECT_NEAR(account.behind.at(Rank(0)), 1 * kMs, 1);
  EXPECT_NEAR(account.behind.at(stranger), 3 * kMs, 1);
  EXPECT_NEAR(account.behind.at(another), 1 * kMs, 1);
}

TEST_F(CriticalPathTest, NoMoreDelayIsDisplacedThanThereIsBehindItself) {
  AddRanks(1);
  const Id128 stranger{8, 8};
  AddSignal(0, "thread.run_queue", 2 * kMs, Rank(0));
  AddSignal(0, "thread.displaced", 5 * kMs, stranger);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kRunQueueOwn], 0, 1);
  EXPECT_NEAR(account.states[State::kRunQueue], 2 * kMs, 1);
  EXPECT_NEAR(account.behind.at(stranger), 2 * kMs, 1);
}

TEST_F(CriticalPathTest, AWaitForAThreadOfTheSameProcessIsSplitByWhatThatThreadDid) {
  for (const bool runs : {true, false}) {
    host = {};
    AddRanks(1);
    AddSignal(0, "thread.waiting", 10 * kMs, Rank(0));
    AddSignalOfOther(runs ? "thread.running" : "thread.sleeping", 9 * kMs);
    AddSignalOfOther("thread.running", 1 * kMs);
    const PathAccount account = Account();
    EXPECT_NEAR(account.states[State::kLoader], (runs ? 10 : 1) * kMs, 1);
    EXPECT_NEAR(account.states[State::kSleeping], (runs ? 0 : 9) * kMs, 1);
    EXPECT_NEAR(account.idle.total(), (runs ? 0 : 9) * kMs, 1);
    EXPECT_EQ(account.launch_thread_asleep, 0);
  }
}

// The pool of a server: the others wait for a request, too, but for the one that works on one, and for the
// one that reads them from the network.
TEST_F(CriticalPathTest, AWaitOfThreadsForEachOtherIsSplitByWhatTheyDidBesides) {
  AddRanks(1);
  const auto add = [&](int32_t tid, const std::string& metric, double ns, std::optional<Id128> other = {}) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = Rank(0),
                              .tid = tid,
                              .other = other,
                              .values = {static_cast<int64_t>(ns)}});
  };
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(0));
  add(555, "thread.running", 4 * kMs);
  add(555, "thread.waiting", 6 * kMs, Rank(0));
  add(556, "thread.running", 2 * kMs);
  add(556, "thread.sleeping", 2 * kMs);
  add(556, "thread.waiting", 6 * kMs, Rank(0));
  add(557, "thread.waiting", 10 * kMs, Rank(0));
  add(558, "thread.sleeping", 10 * kMs);
  const PathAccount account = Account();
  // 4 ms of the busiest one, and of its 6 ms of waits 4 by its own share of the CPU time, half of 2 by that
  // of 556.
  EXPECT_NEAR(account.states[State::kLoader], 9 * kMs, 1);
  EXPECT_NEAR(account.states[State::kSleeping], 1 * kMs, 1) << "not that of a thread that did nothing else";
  EXPECT_NEAR(account.states[State::kWaiting], 0, 1);
}

// A thread of the process that reads from a socket, and one of a loader.
TEST_F(CriticalPathTest, OnlyTheProcessesOwnWaitsForPacketsMayBeForRequests) {
  for (const bool own : {true, false}) {
    host = {};
    AddRanks(1);
    const Id128 reader = own ? Rank(0) : Id128{9, 9};
    program.family = {Rank(0), reader};
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = "thread.waiting",
                              .process = Rank(0),
                              .tid = Tid(0),
                              .other = reader,
                              .values = {static_cast<int64_t>(10 * kMs)}});
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = "thread.network",
                              .process = reader,
                              .tid = 555,
                              .values = {static_cast<int64_t>(9 * kMs)}});
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = "thread.running",
                              .process = reader,
                              .tid = 555,
                              .values = {static_cast<int64_t>(1 * kMs)}});
    const PathAccount account = Account();
    EXPECT_NEAR(account.idle[State::kNetwork], 9 * kMs, 1);
    EXPECT_NEAR(account.packets, own ? 9 * kMs : 0, 1);
  }
}

// As a data set that is streamed from a server on this machine, which is no part of the program.
TEST_F(CriticalPathTest, AServerOnThisMachineIsWaitedForThroughTheThreadThatReads) {
  AddRanks(1);
  program.family = {Rank(0)};
  const Id128 server{9, 9};
  const auto add = [&](const std::string& metric, double ns, std::optional<Id128> other) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = Rank(0),
                              .tid = 555,
                              .other = other,
                              .values = {static_cast<int64_t>(ns)}});
  };
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(0));
  add("thread.running", 1 * kMs, std::nullopt);
  add("thread.network", 6 * kMs, server);
  add("thread.network", 3 * kMs, std::nullopt);
  const PathAccount account = Account();
  ASSERT_TRUE(account.waited_outside.contains(server));
  EXPECT_NEAR(account.waited_outside.at(server), 6 * kMs, 1);
  EXPECT_NEAR(account.states[State::kWaiting], 6 * kMs, 1);
  EXPECT_NEAR(account.states[State::kNetwork], 3 * kMs, 1);
}

// A process that feeds the program waits for its requests, but not while the program waits for it.
TEST_F(CriticalPathTest, AHelpersWaitForRequestsIsNoPartOfAWaitForIt) {
  AddRanks(1);
  program.family.insert(Rank(5));
  AddSignal(0, "thread.running", 6 * kMs);
  AddSignal(0, "thread.network", 4 * kMs, Rank(5));
  AddSignal(5, "thread.network", 4 * kMs, Rank(0));
  AddSignal(5, "thread.waiting", 1 * kMs, Rank(0));
  AddSignal(5, "thread.running", 5 * kMs);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kCpu], 6 * kMs, 1);
  EXPECT_NEAR(account.states[State::kLoader], 4 * kMs, 1);
  EXPECT_NEAR(account.states[State::kNetwork] + account.states[State::kWaiting], 0, 1);
}

// As if another thread of the program kept the helper from its work: what both waited for is unknown.
TEST_F(CriticalPathTest, AHelperThatDidNothingElseWaitedAsWell) {
  AddRanks(1);
  program.family.insert(Rank(5));
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(5));
  AddSignal(5, "thread.waiting", 9 * kMs, Rank(0));
  AddSignal(5, "thread.running", 1 * kMs);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kLoader], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kWaiting], 9 * kMs, 1);
}

TEST_F(CriticalPathTest, SleepsWhileTheGpuWorksAreWaitsForItAndOthersAreIdle) {
  AddRanks(1);
  AddSignal(0, "thread.running", 1 * kMs);
  AddSignal(0, "thread.sleeping", 9 * kMs);
  const PathAccount account = Account({.kernels = {{kBegin + 1 * kMs, kBegin + 5 * kMs}},
                                       .copies = {{kBegin + 4 * kMs, kBegin + 7 * kMs}},
                                       .syncs = {}});
  EXPECT_NEAR(account.states[State::kCpu], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuRun], 4 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuCopy], 2 * kMs, 1);
  EXPECT_NEAR(account.states[State::kSleeping], 3 * kMs, 1);
  EXPECT_NEAR(account.idle.total(), 3 * kMs, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);
}

// A thread that waits for the GPU waits for another loop's work as well; one that sleeps for itself doesn't.
TEST_F(CriticalPathTest, WorkOfAnotherLoopIsOnlyWaitedForWithinAWait) {
  AddRanks(1);
  AddSignal(0, "thread.running", 1 * kMs);
  AddSignal(0, "thread.sleeping", 9 * kMs);
  const PathAccount account = Account({.kernels = {{kBegin + 4 * kMs, kBegin + 5 * kMs}},
                                       .copies = {},
                                       .syncs = {{kBegin + 1 * kMs, kBegin + 6 * kMs}},
                                       .of_other_loops = {{kBegin + 2 * kMs, kBegin + 10 * kMs}}});
  EXPECT_NEAR(account.states[State::kCpu], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuQueue], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuRun], 4 * kMs, 1);
  EXPECT_NEAR(account.states[State::kSleeping], 4 * kMs, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);
}

// A server sleeps for 14 ms, and starts a thread for a request, for which it waits.
TEST_F(CriticalPathTest, BeforeTheLaunchThreadStartedTheStepIsInTheMainThread) {
  AddRanks(1);
  program.main_thread = 555;
  const auto add = [&](int bucket, const std::string& metric, int32_t tid, int64_t ms,
                       const Id128& other = {}) {
    host.Ingest(model::Signal{.start_ns = kBegin + bucket * kBucket,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = Rank(0),
                              .tid = tid,
                              .other = other,
                              .values = {ms * kNanosPerMilli}});
  };
  add(0, "thread.sleeping", 555, 10);
  add(1, "thread.sleeping", 555, 4);
  add(1, "thread.running", 555, 1);
  add(1, "thread.waiting", 555, 5, Rank(0));
  add(1, "thread.running", Tid(0), 5);
  const TimeRange step{kBegin, kBegin + 2 * kBucket};
  const PathAccount account = AccountFor(program, host, {}, step);
  EXPECT_NEAR(account.states[State::kSleeping], 14 * kMs, 1);
  EXPECT_NEAR(account.launch_thread_asleep, 14 * kMs, 1);
  EXPECT_NEAR(account.states[State::kCpu], (5 + 1) * kMs, 1);
  EXPECT_NEAR(account.states.total(), 20 * kMs, 1);
  // A step that begins within the thread's first bucket.
  const PathAccount late = AccountFor(program, host, {}, {kBegin + kBucket + kBucket / 2, step.to_ns});
  EXPECT_NEAR(late.states[State::kSleeping], 2 * kMs, 1);
  EXPECT_NEAR(late.states[State::kUnexplained], 0, 1);
  // One that has long been there, and has no signals yet, may do anything.
  add(-1, "thread.running", Tid(0), 1);
  EXPECT_NEAR(AccountFor(program, host, {}, step).states[State::kUnexplained], 15 * kMs, 1);
}

// A learner waits for its actor, which sleeps for 8 ms: for 5 ms of them in a wait for its own work on the
// GPU.
TEST_F(CriticalPathTest, AWaitForTheThreadOfAnotherLoopIsWhatThatWaitedFor) {
  AddRanks(1);
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(0));
  AddSignalOfOther("thread.running", 2 * kMs);
  AddSignalOfOther("thread.sleeping", 8 * kMs);
  GpuWork gpu;
  gpu.of_other_loops = {{kBegin + 3 * kMs, kBegin + 7 * kMs}};
  gpu.syncs_of_other_loops = {{kBegin + 2 * kMs, kBegin + 7 * kMs}};
  const PathAccount account = Account(gpu);
  EXPECT_NEAR(account.states[State::kLoader], 2 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuRun], 4 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuQueue], 1 * kMs, 1);
  EXPECT_NEAR(account.states[State::kSleeping], 3 * kMs, 1);
  EXPECT_NEAR(account.idle.total(), 3 * kMs, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);
}

// The GPU runs a kernel for 2 ms, then has work but does none, because a thread that feeds it is frozen.
TEST_F(CriticalPathTest, AStoppedThreadThatKeepsTheGpuFromItsWorkStopsTheStep) {
  AddRanks(1);
  const Id128 stranger{8, 8};
  AddSignal(0, "thread.waiting", 10 * kMs);
  host.Ingest(model::Signal{.start_ns = kBegin,
                            .bucket_ns = kBucket,
                            .metric = "thread.stopped",
                            .process = Rank(0),
                            .tid = Tid(0) + 1,
                            .other = stranger,
                            .values = {7 * kNanosPerMilli}});
  const GpuWork gpu{.kernels = {{kBegin, kBegin + 2 * kNanosPerMilli}},
                    .copies = {},
                    .syncs = {{kBegin, kBegin + 10 * kNanosPerMilli}}};
  const PathAccount account = Account(gpu);
  EXPECT_NEAR(account.states[State::kGpuRun], 2 * kMs, 1);
  EXPECT_NEAR(account.states[State::kStopped], 7 * kMs, 1);
  EXPECT_NEAR(account.halted.at(Rank(0)), 7 * kMs, 1);
  EXPECT_NEAR(account.stopped_by.at(stranger), 7 * kMs, 1);
  EXPECT_NEAR(account.states[State::kGpuQueue], 1 * kMs, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);
}

// As multiprocessing.Pool has: a thread of the program reads the results that its processes write.
TEST_F(CriticalPathTest, AWaitForAHelperThreadIsSplitByWhatThatOneWaitedFor) {
  AddRanks(1);
  program.launch_threads.clear();
  const Id128 worker{7, 50};
  program.family.insert(worker);
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(0));
  const auto add = [&](const Id128& process, const std::string& metric, int64_t ns,
                       std::optional<Id128> other = std::nullopt) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = metric,
                              .process = process,
                              .tid = 555,
                              .other = other,
                              .values = {ns}});
  };
  add(Rank(0), "thread.running", kMs);
  add(Rank(0), "thread.waiting", 9 * kMs, worker);
  add(worker, "thread.running", 6 * kMs);
  add(worker, "thread.blocked_io", 4 * kMs);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kLoader], kMs + 0.6 * 9 * kMs, 1);
  EXPECT_NEAR(account.states[State::kBlockedIo], 0.4 * 9 * kMs, 1);
  EXPECT_NEAR(account.states[State::kWaiting], 0, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);
}

TEST_F(CriticalPathTest, TheTimeARankWaitedForThisProgramIsNotCounted) {
  AddRanks(2);
  AddSignal(0, "thread.running", 5 * kMs);
  AddSignal(0, "thread.network", 5 * kMs, Rank(1));
  AddSignal(1, "thread.network", 5 * kMs, Rank(0));
  AddSignal(1, "thread.running", 5 * kMs);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kCpu], 5 * kMs, 1);
  EXPECT_NEAR(account.ranks.at(Rank(1)).states[State::kCpu], 5 * kMs, 1);
  EXPECT_NEAR(account.states[State::kNetwork], 0, 1);
}

TEST_F(CriticalPathTest, MutualWaitsOfAllRanksTerminateAndSumToTheStep) {
  constexpr uint64_t kRanks = 16;
  AddRanks(kRanks);
  for (uint64_t rank = 0; rank < kRanks; ++rank)
    for (uint64_t other = 0; other < kRanks; ++other)
      if (other != rank) AddSignal(rank, "thread.network", 10.0 * kMs / (kRanks - 1), Rank(other));
  const PathAccount account = Account();
  EXPECT_NEAR(account.states.total(), 10 * kMs, 0.01 * kMs);
}

TEST_F(CriticalPathTest, ARanksSleepIsIdleTime) {
  AddRanks(2);
  AddSignal(0, "thread.network", 10 * kMs, Rank(1));
  AddSignal(1, "thread.running", 4 * kMs);
  AddSignal(1, "thread.sleeping", 6 * kMs);
  const PathAccount account = Account();
  ASSERT_TRUE(account.ranks.contains(Rank(1)));
  EXPECT_NEAR(account.ranks.at(Rank(1)).idle, 6 * kMs, 0.01 * kMs);
}

TEST_F(CriticalPathTest, ReclaimIsNeverBlockedTime) {
  AddRanks(2);
  program.launch_threads.erase(Rank(1));
  // The launch thread itself, a loader, and a rank that are blocked in reclaim.
  const auto reclaim = [&](uint64_t rank) {
    AddSignal(rank, "thread.running", 1 * kMs);
    AddSignal(rank, "thread.blocked", 4 * kMs);
    AddSignal(rank, "thread.blocked_io", 5 * kMs);
    AddSignal(rank, "thread.reclaim", 8 * kMs);
  };
  reclaim(0);
  PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kReclaim], 8 * kMs, 1);
  EXPECT_NEAR(account.states[State::kBlocked], 0, 1);
  EXPECT_NEAR(account.states[State::kBlockedIo], 2 * kMs, 1);
  EXPECT_NEAR(account.states.total(), 10 * kMs, 1);

  host = {};
  AddSignal(0, "thread.waiting", 10 * kMs, Rank(1));
  reclaim(1);
  program.ranks.clear();
  program.family.insert(Rank(1));
  program.loaders.insert(Rank(1));
  account = Account();
  for (const diagnose::Account& states : {account.states, account.loaders}) {
    EXPECT_NEAR(states[State::kReclaim], 8 * kMs, 1);
    EXPECT_NEAR(states[State::kBlocked], 0, 1);
    EXPECT_NEAR(states[State::kBlockedIo], 2 * kMs, 1);
    EXPECT_NEAR(states.total(), 10 * kMs, 1);
  }

  program.family.erase(Rank(1));
  program.loaders.clear();
  program.launch_threads[Rank(1)] = Tid(1);
  const RankAccount rank = Account().ranks.at(Rank(1));
  EXPECT_NEAR(rank.states[State::kReclaim], 8 * kMs, 1);
  EXPECT_NEAR(rank.states[State::kBlocked], 0, 1);
  EXPECT_NEAR(rank.states[State::kBlockedIo], 2 * kMs, 1);
  EXPECT_NEAR(rank.states.total(), 10 * kMs, 1);
}

TEST_F(CriticalPathTest, AWaitForPacketsIsNetworkQueueWhilePacketsOfTheJobAreQueued) {
  AddRanks(2);
  AddSignal(0, "thread.network", 8 * kMs);
  const auto queued = [&](const Id128& process, double ns) {
    host.Ingest(model::Signal{.start_ns = kBegin,
                              .bucket_ns = kBucket,
                              .metric = "network.queued",
                              .process = process,
                              .values = {static_cast<int64_t>(ns)}});
  };
  queued(Rank(1), 3 * kMs);
  queued({8, 8}, 8 * kMs);
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kNetworkQueue], 3 * kMs, 1);
  EXPECT_NEAR(account.states[State::kNetwork], 5 * kMs, 1);
}

TEST_F(CriticalPathTest, AWaitForADiskIsThrottledUpToTheTimeTheLimitTakes) {
  AddRanks(1);
  AddSignal(0, "thread.blocked_io", 8 * kMs);
  host.Ingest(model::Signal{.start_ns = kBegin,
                            .bucket_ns = kBucket,
                            .metric = "cgroup.io_throttled",
                            .process = Rank(0),
                            .values = {static_cast<int64_t>(6 * kMs)}});
  const PathAccount account = Account();
  EXPECT_NEAR(account.states[State::kIoThrottled], 6 * kMs, 1);
  EXPECT_NEAR(account.states[State::kBlockedIo], 2 * kMs, 1);
}

}  // namespace
}  // namespace gpusonde::diagnose
