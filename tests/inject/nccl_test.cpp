// SPDX-License-Identifier: Apache-2.0
// The inject library as NCCL's profiler plugin: simulated NCCLs of each version, and other plugins behind it.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <tuple>
#include <vector>

#include "base/fd.h"
#include "base/testing/temp_folder.h"
#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::HasSubstr;
using ::testing::Values;

struct CollectiveOf : Collective {
  std::string operation_name, datatype_name, algorithm_name;
  int32_t pid = 0, tid = 0;
};

struct Job {
  int status = -1;
  std::vector<Communicator> communicators;
  std::vector<CollectiveOf> collectives;
  model::DropCounts drops;
};

// Runs nccl_ranks to its end; with a consumer, receives what the library reports.
Job RunJob(const std::vector<std::string>& arguments, std::vector<std::string> variables, bool profiled) {
  Job job;
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  EXPECT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  EXPECT_TRUE(inheritance.has_value());
  if (profiled) variables.push_back(inheritance->environment);
  variables.emplace_back("LD_LIBRARY_PATH=" GPUSONDE_SIMGPU_FOLDER);
  std::vector<std::string> words = {GPUSONDE_TEST_PROGRAMS "/nccl_ranks"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (std::string& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  std::vector<char*> argv = pointers(words);
  std::vector<char*> environment = pointers(variables);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::execve(argv[0], argv.data(), environment.data());
    ::_exit(127);
  }
  inheritance->fd.Close();
  const auto visit = sources::VisitOnly([&](const Event& event) {
    if (const auto* communicator = std::get_if<Communicator>(&event.what))
      job.communicators.push_back(*communicator);
    if (const auto* collective = std::get_if<Collective>(&event.what))
      job.collectives.push_back({*collective, std::string(collective->operation),
                                 std::string(collective->datatype), std::string(collective->algorithm),
                                 event.pid, event.tid});
  });
  while (::waitpid(pid, &job.status, WNOHANG) != pid) {
    EXPECT_TRUE(events->Drain(visit).has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(events->Drain(visit).has_value());
  job.drops = events->DrainDrops();
  return job;
}

std::string Plugin() { return "NCCL_PROFILER_PLUGIN=" + OwnLibrary::Path(); }

class NcclVersion : public ::testing::TestWithParam<int> {};

TEST_P(NcclVersion, EachRankReportsEachOfItsCollectivesOnce) {
  const int version = GetParam();
  const Job job = RunJob({"--ranks", "3", "--steps", "25", "--work-us", "1000"},
                         {Plugin(), "SIMGPU_NCCL_PROFILER=" + std::to_string(version)}, true);
  ASSERT_EQ(job.status, 0);
  ExpectNothingLost(job.drops);
  std::map<int32_t, std::vector<CollectiveOf>> by_rank;
  for (const CollectiveOf& one : job.collectives) by_rank[one.rank].push_back(one);
  ASSERT_EQ(by_rank.size(), 3U);
  for (auto& [rank, calls] : by_rank) {
    std::ranges::sort(calls, {}, &Collective::sequence);
    ASSERT_EQ(calls.size(), 25U);
    for (int64_t i = 0; i < 25; ++i) {
      const CollectiveOf& call = calls[static_cast<size_t>(i)];
      EXPECT_EQ(call.sequence, i);
      EXPECT_EQ(call.operation_name, "AllReduce");
      EXPECT_EQ(call.datatype_name, "ncclFloat32");
      EXPECT_EQ(call.algorithm_name, "RING");
      EXPECT_EQ(call.count, 262'144);
      EXPECT_EQ(call.channels, 2);
      EXPECT_EQ(call.pid, calls[0].pid);
      EXPECT_EQ(call.tid, call.pid) << "the program calls from its main thread";
      EXPECT_LE(call.called_ns, call.enqueued_ns);
      EXPECT_LE(call.called_ns, call.begin_ns);
      EXPECT_GE(call.end_ns - call.begin_ns, 100'000) << "as long as a simulated collective lasts";
      EXPECT_EQ(call.gpu_ns > 0, version >= 4);
      EXPECT_EQ(call.communicator, job.collectives[0].communicator);
    }
  }
  std::set<int32_t> ranks;
  for (const Communicator& communicator : job.communicators) {
    ranks.insert(communicator.rank);
    EXPECT_EQ(communicator.communicator, job.collectives[0].communicator);
    EXPECT_EQ(communicator.ranks, version == 3 ? 0 : 3);
    EXPECT_EQ(communicator.plugin_version, version);
    EXPECT_EQ(communicator.dropped, 0);
  }
  EXPECT_EQ(ranks, (std::set<int32_t>{0, 1, 2}));
  EXPECT_TRUE(std::ranges::any_of(job.communicators, [](const auto& one) { return one.left_ns != 0; }));
}

INSTANTIATE_TEST_SUITE_P(All, NcclVersion, Values(3, 4, 5, 6));

TEST(NcclPlugin, ReportsACollectiveThatHangsBeforeItEnds) {
  // Rank 1 comes 2.5 s late to the second collective.
  const Job job =
      RunJob({"--ranks", "2", "--steps", "2", "--slow", "1", "--slow-us", "2500000", "--slow-after", "1"},
             {Plugin()}, true);
  ASSERT_EQ(job.status, 0);
  std::vector<CollectiveOf> second;
  std::ranges::copy_if(job.collectives, std::back_inserter(second),
                       [](const CollectiveOf& one) { return one.sequence == 1 && one.rank == 0; });
  ASSERT_EQ(second.size(), 2U);
  EXPECT_NE(second[0].begin_ns, 0);
  EXPECT_EQ(second[0].end_ns, 0);
  EXPECT_GT(second[1].end_ns, second[1].begin_ns + 2'000'000'000);
}

// What a plugin of one version gets from a NCCL of another.
std::string LogOf(int nccl, int plugin, int mask, bool through_gpusonde, bool profiled) {
  const TempFolder folder;
  const std::string log = folder / "log";
  const std::string chained = fmt::format("{}/nccl_chained_v{}.so", GPUSONDE_TEST_PROGRAMS, plugin);
  std::vector<std::string> variables = {fmt::format("SIMGPU_NCCL_PROFILER={}", nccl),
                                        fmt::format("NCCL_CHAINED_MASK={}", mask), "NCCL_CHAINED_LOG=" + log};
  variables.push_back(through_gpusonde ? Plugin() : "NCCL_PROFILER_PLUGIN=" + chained);
  if (through_gpusonde) variables.push_back("GPUSONDE_NCCL_CHAIN=" + chained);
  const Job job =
      RunJob({"--ranks", "1", "--steps", "3", "--work-us", "1000"}, std::move(variables), profiled);
  EXPECT_EQ(job.status, 0);
  EXPECT_EQ(job.collectives.size(), profiled ? 3U : 0U);
  return ReadFile(log).value_or("");
}

class Chained : public ::testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Chained, GetsWhatNcclWouldGiveItAlone) {
  const auto [nccl, plugin] = GetParam();
  constexpr int kEverything = 0x7fff, kProxies = 1 << 3 | 1 << 4, kCalls = 1 << 1;
  for (const int mask : {kEverything, kProxies, kCalls}) {
    const std::string alone = LogOf(nccl, plugin, mask, false, false);
    EXPECT_THAT(alone, HasSubstr("start 2 context 77")) << "calls are the parents of all";
    EXPECT_EQ(LogOf(nccl, plugin, mask, true, false), alone) << "mask " << mask << ", no consumer";
    EXPECT_EQ(LogOf(nccl, plugin, mask, true, true), alone) << "mask " << mask << ", recorded";
  }
}

// Versions of NCCL, and of plugins that it knows.
INSTANTIATE_TEST_SUITE_P(All, Chained,
                         Values(std::tuple(3, 3), std::tuple(4, 3), std::tuple(4, 4), std::tuple(5, 3),
                                std::tuple(5, 4), std::tuple(5, 5), std::tuple(6, 3), std::tuple(6, 4),
                                std::tuple(6, 5), std::tuple(6, 6)));

// Its 4,096th call has the place of the first communicator's call.
TEST(NcclPlugin, GivesACommunicatorThatTheOtherPluginRefusesNoHandlesOfAnother) {
  const TempFolder folder;
  const Outcome outcome = RunWithSocket(
      {"join=1", "collectives=1", "wait=600", "join=2", "collectives=4096"},
      {"GPUSONDE_NCCL_CHAIN=" GPUSONDE_TEST_PROGRAMS "/nccl_chained_v5.so", "NCCL_CHAINED_MASK=2",
       "NCCL_CHAINED_COMMUNICATORS=1", "NCCL_CHAINED_LOG=" + (folder / "log")});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_THAT(outcome.received.collectives, ::testing::SizeIs(4097));
  EXPECT_THAT(ReadFile(folder / "log").value_or(""), HasSubstr("stop 1\n"));
}

TEST(NcclPlugin, TheProgramWaitsForNoSlowConsumerWhenItLeavesACommunicator) {
  GPUSONDE_NOT_UNDER_TSAN("the program is too slow to fill the socket");
  Result<GpuEvents> events = GpuEvents::Create(SocketsOnly(), nullptr);
  ASSERT_TRUE(events.has_value());
  Result<GpuEvents::Inheritance> inheritance = events->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  Client client({"kernels=200000", "leaves=8"}, {inheritance->environment});
  inheritance->fd.Close();
  std::this_thread::sleep_for(std::chrono::seconds(8));  // it reads nothing
  Received received;
  EXPECT_EQ(client.Finish(*events, received), 0);
  EXPECT_LT(std::atoi(client.printed().c_str()), 1000) << "our thread waits for up to a second at a time";
}

TEST(NcclPlugin, RunsWithoutAPluginThatCantBeOpened) {
  const Job job =
      RunJob({"--ranks", "1", "--steps", "2"}, {Plugin(), "GPUSONDE_NCCL_CHAIN=/nonexistent.so"}, true);
  EXPECT_EQ(job.status, 0);
  EXPECT_EQ(job.collectives.size(), 2U);
}

}  // namespace
}  // namespace gpusonde::cupti
