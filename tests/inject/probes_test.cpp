// SPDX-License-Identifier: Apache-2.0
// The inject library in a child process (client.cpp) that reports through USDT probes.
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>

#include "base/testing/refused.h"
#include "base/testing/temp_folder.h"
#include "base/time.h"
#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class Probes : public ::testing::Test {
 protected:
  void SetUp() override { MakeEvents({.library_path = OwnLibrary::Path()}); }

  void MakeEvents(const GpuEvents::Options& options) {
    Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
    SKIP_WHERE_REFUSED(tables);
    Result<GpuEvents> events = GpuEvents::Create(options, &*tables);
    SKIP_WHERE_REFUSED(events);
    events_.emplace(std::move(*events));
  }

  // Attaches all probes to a process that has not executed the client yet.
  void Attach(int32_t pid) {
    const Status attached = events_->AttachBeforeExec(pid);
    EXPECT_TRUE(attached.has_value()) << attached.error().message;
    EXPECT_TRUE(events_->EnableLaunchStacks(pid).has_value());
  }

  // Runs the client, attached before its first instruction. Returns its exit status.
  int RunWithProbes(const std::vector<std::string>& steps, const std::vector<std::string>& variables = {}) {
    Client client(steps, variables, [&](int32_t pid) { Attach(pid); });
    const int status = client.Finish(*events_, received_);
    printed_ = client.printed();
    events_->Forget(client.pid());
    return status;
  }

  std::optional<GpuEvents> events_;
  Received received_;
  std::string printed_;
};

TEST_F(Probes, ReportTheSameRecordsAsTheSocketPlusStacks) {
  const std::vector<std::string> steps = {"kernels=2001", "copies=77", "sets=33", "graph=10,2",
                                          "ranges=3",     "sync",      "wait=50", "exit=7"};
  EXPECT_EQ(RunWithProbes(steps), 7);
  const Outcome socket = cupti::RunWithSocket(steps);
  std::map<std::tuple<Total::Of, std::string>, uint64_t> here, there;
  for (const auto& [key, sum] : received_.totals) here[{std::get<1>(key), std::get<2>(key)}] = sum.count;
  for (const auto& [key, sum] : socket.received.totals)
    there[{std::get<1>(key), std::get<2>(key)}] = sum.count;
  EXPECT_EQ(here, there);
  EXPECT_EQ(received_.TotalOf(Total::Of::kKernel, "alpha"),
            socket.received.TotalOf(Total::Of::kKernel, "alpha"));
  EXPECT_EQ(received_.kernels.size(), 2021U);
  EXPECT_EQ(received_.kernels.size(), socket.received.kernels.size());
  EXPECT_EQ(received_.nodes.size(), socket.received.nodes.size());
  EXPECT_EQ(received_.ranges, socket.received.ranges);
  ASSERT_THAT(received_.calls, ::testing::Not(IsEmpty()));
  for (const Received::CallOf& call : received_.calls) {
    EXPECT_TRUE(call.stack_taken);
    // At least the probe's function, the call's end in the library, CUPTI, and main.
    EXPECT_GE(call.stack.size(), 4U);
  }
  ExpectNothingLost(events_->DrainDrops());
}

TEST_F(Probes, BesideASocketReportEachCallOnceWithItsStack) {
  Result<GpuEvents::Inheritance> inheritance = events_->MakeSocket();
  ASSERT_TRUE(inheritance.has_value());
  EXPECT_EQ(RunWithProbes({"kernels=80", "sync", "wait=50"}, {inheritance->environment}), 0);
  inheritance->fd.Close();
  EXPECT_EQ(received_.TotalOf(Total::Of::kKernel, "alpha").count, 40U);
  EXPECT_THAT(received_.kernels, SizeIs(80));
  EXPECT_THAT(received_.calls, SizeIs(80));
  for (const Received::CallOf& call : received_.calls) EXPECT_TRUE(call.stack_taken);
  ExpectNothingLost(events_->DrainDrops());
}

TEST_F(Probes, WakeARunningProgramAndLetItSleepAgain) {
  Client client(
      {"kernels=10", "sync", "holder", "wait=1000", "kernels=100", "sync", "wait=3500", "holder", "exit=5"},
      {});
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const Result<bool> ours = events_->Consider(client.pid(), OwnLibrary::Path());
  ASSERT_TRUE(ours.has_value()) << ours.error().message;
  EXPECT_TRUE(*ours);
  EXPECT_TRUE(events_->EnableLaunchStacks(client.pid()).has_value());
  client.Drain(*events_, received_, std::chrono::milliseconds(1300));
  events_->Stop();
  EXPECT_EQ(client.Finish(*events_, received_), 5);
  EXPECT_EQ(client.printed(), "free\nfree\n");
  ASSERT_THAT(received_.begins, SizeIs(1));
  // What ran before it woke was not observed.
  EXPECT_EQ(received_.TotalOf(Total::Of::kKernel, "alpha").count, 50U);
  EXPECT_THAT(received_.calls, SizeIs(100));
}

TEST_F(Probes, WakeOnceForTheFirstReportAfterTheGivenTime) {
  Client client({"rate=20,4", "exit=0"}, {}, [&](int32_t pid) { Attach(pid); });
  const auto woken = [&](int patience_ms) {
    client.Drain(*events_, received_, std::chrono::milliseconds(30));
    pollfd wait{.fd = events_->wake_fds().front(), .events = POLLIN, .revents = 0};
    return ::poll(&wait, 1, patience_ms) == 1;
  };
  client.Drain(*events_, received_, std::chrono::milliseconds(500));
  EXPECT_FALSE(woken(600)) << "nobody asked";
  const int64_t after_ns = MonotonicNow() + 300 * kNanosPerMilli;
  events_->WakeAfter(after_ns);
  EXPECT_TRUE(woken(3000));
  EXPECT_GE(MonotonicNow(), after_ns);
  EXPECT_FALSE(woken(600)) << "once";
  EXPECT_EQ(client.Finish(*events_, received_), 0);
}

TEST_F(Probes, OfEveryProcessNeedNoPid) {
  MakeEvents({.library_path = OwnLibrary::Path(), .every_process = true});
  const Result<bool> ours = events_->Consider(::getpid(), OwnLibrary::Path());
  ASSERT_TRUE(ours.has_value()) << ours.error().message;
  EXPECT_TRUE(*ours);
  Client first({"kernels=100", "sync", "wait=50"}, {});
  Client second({"kernels=100", "sync", "wait=50"}, {});
  EXPECT_EQ(first.Finish(*events_, received_), 0);
  EXPECT_EQ(second.Finish(*events_, received_), 0);
  EXPECT_TRUE(received_.pids.contains(first.pid()));
  EXPECT_TRUE(received_.pids.contains(second.pid()));
  EXPECT_THAT(received_.kernels, SizeIs(200));
}

TEST_F(Probes, AreNotAttachedToAnotherLibrary) {
  const TempFolder folder;
  const std::string path = folder.path() + "/libgpusonde-inject.so";
  std::filesystem::copy_file(OwnLibrary::Path(), path);
  EXPECT_TRUE(*events_->Consider(::getpid(), path));
  events_->Forget(::getpid());
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_FALSE(*events_->Consider(::getpid(), path));
  EXPECT_FALSE(*events_->Consider(::getpid(), folder.path() + "/other.so"));
  EXPECT_FALSE(*events_->Consider(::getpid(), folder.path() + "/gone/libgpusonde-inject.so"));
}

// CUPTI reports an overhead of 40 ms in a window of 2 s, so that the governor sleeps for 6 s and, where our
// own cost is high as well, for up to 18 s. Totals are what the device did (SIMGPU_LOG) in the windows, to
// the nanosecond. Nothing is missing except between windows, and what CUPTI reports as dropped: on a busy
// machine our thread may drain its buffers too late.
TEST_F(Probes, AwakeWindowsAreExactWhileTheGovernorCutsThem) {
  GPUSONDE_NOT_UNDER_TSAN("our own cost is so high that the governor sleeps longer than the program runs");
  const TempFolder folder;
  const std::string log = folder / "log";
  ASSERT_EQ(RunWithProbes({"rate=5000,20", "sync", "wait=600"},
                          {"SIMGPU_LOG=" + log, "SIMGPU_CUPTI_FLUSH_NS=5000000"}),
            0);
  const model::DropCounts drops = events_->DrainDrops();
  const auto dropped = static_cast<uint64_t>(drops.Of(model::DropReason::kGpuRecordsDropped));
  for (const model::DropInfo& info : model::kDropReasons)
    EXPECT_TRUE(info.reason == model::DropReason::kGpuRecordsDropped || drops.Of(info.reason) == 0)
        << info.name;
  ASSERT_GE(received_.begins.size(), 2U) << "it slept and woke again";
  EXPECT_EQ(received_.ends[0].reason, EndReason::kGovernor);

  std::map<uint32_t, uint64_t> device;  // correlation id: duration
  int64_t asleep = 0;
  std::ifstream file(log);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    std::string kind, skipped;
    uint32_t correlation = 0;
    uint64_t start_ns = 0, end_ns = 0;
    fields >> kind >> skipped >> skipped >> skipped >> skipped >> correlation >> start_ns >> end_ns;
    if (kind != "kernel") continue;
    if (correlation == 0)
      ++asleep;
    else
      device[correlation] = end_ns - start_ns;
  }
  EXPECT_GT(asleep, 0);

  std::map<uint32_t, uint64_t> reported;
  struct Ends {
    uint32_t last_timed = 0, first_untimed = std::numeric_limits<uint32_t>::max();
  };
  std::map<uint32_t, Ends> sessions;
  // Launched while the library slept, and run after it woke: counted, without a correlation id.
  uint64_t strays = 0, strays_ns = 0;
  for (const Received::KernelOf& kernel : received_.kernels) {
    const auto duration_ns = static_cast<uint64_t>(kernel.end_ns - kernel.start_ns);
    if (kernel.correlation == 0) {
      ++strays;
      strays_ns += duration_ns;
    } else {
      reported[kernel.correlation] = duration_ns;
      Ends& ends = sessions[kernel.session];
      if (duration_ns != 0)
        ends.last_timed = std::max(ends.last_timed, kernel.correlation);
      else
        ends.first_untimed = std::min(ends.first_untimed, kernel.correlation);
    }
  }
  EXPECT_EQ(reported.size() + strays, received_.kernels.size()) << "each once";
  ASSERT_GT(reported.size(), 1000U);
  uint64_t did_ns = 0, untimed = 0;
  size_t gaps = 0;
  bool in_gap = false;
  for (auto at = device.find(reported.begin()->first);
       at != device.end() && at->first <= reported.rbegin()->first; ++at) {
    const bool is_reported = reported.contains(at->first);
    // Still queued or running when its window ended: counted, with an unknown duration.
    const bool is_timed = is_reported && reported[at->first] != 0;
    if (is_timed) did_ns += at->second;
    if (is_reported && !is_timed) ++untimed;
    if (!is_reported && !in_gap) ++gaps;
    in_gap = !is_reported;
  }
  EXPECT_LE(gaps, received_.begins.size() - 1 + dropped)
      << "between windows, and where CUPTI dropped records";
  const Received::Sum total = received_.TotalOf(Total::Of::kKernel, "alpha");
  EXPECT_EQ(total.count, reported.size() + strays);
  EXPECT_EQ(total.untimed, untimed);
  for (const auto& [session, ends] : sessions)
    EXPECT_LT(ends.last_timed, ends.first_untimed)
        << "session " << session << ": only the last kernels of a stream are untimed";
  EXPECT_LT(untimed, reported.size() / 100) << "what is queued when a window ends, of two seconds";
  EXPECT_EQ(total.total_ns, did_ns + strays_ns);
}

// As a rank of a program that is recorded, whose launcher closed the socket: no governor.
TEST_F(Probes, ARecordedProgramsRankIsRecordedCompletely) {
  ASSERT_EQ(RunWithProbes({"rate=80000,5", "sync", "wait=600"}, {"GPUSONDE_INJECT_SOCKET=99:1"}), 0);
  EXPECT_THAT(received_.begins, SizeIs(1));
  ASSERT_THAT(received_.ends, SizeIs(1));
  EXPECT_EQ(received_.ends[0].reason, EndReason::kExit);
  // Where threads get no CPU for a while, records are dropped, and counted.
  const auto dropped = static_cast<uint64_t>(events_->DrainDrops().Of(model::DropReason::kGpuRecordsDropped));
  const uint64_t accounted = received_.TotalOf(Total::Of::kKernel, "alpha").count + dropped;
  EXPECT_GE(accounted, 400'000U);
  EXPECT_LE(accounted, 400'001U) << "the record of the one synchronisation may be among those dropped";
}

TEST_F(Probes, RecordsBeforeAKillAreReceived) {
  Client client({"kernels=1000", "sync", "wait=60000"}, {}, [&](int32_t pid) { Attach(pid); });
  client.Drain(*events_, received_, std::chrono::milliseconds(3000));  // long enough for a busy machine
  ::kill(client.pid(), SIGKILL);
  EXPECT_EQ(client.Finish(*events_, received_), 128 + SIGKILL);
  EXPECT_THAT(received_.kernels, SizeIs(1000));
  EXPECT_EQ(received_.TotalOf(Total::Of::kKernel, "alpha").count, 500U);
  // Where the machine is busy, the first window exceeds its budget, and the session ends before the kill.
  for (const SessionEnd& end : received_.ends) EXPECT_EQ(end.reason, EndReason::kGovernor);
}

}  // namespace
}  // namespace gpusonde::cupti
