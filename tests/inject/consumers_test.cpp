// SPDX-License-Identifier: Apache-2.0
// Several consumers of one program (client.cpp) that come and go while it runs.
#include <fmt/format.h>

#include <functional>
#include <memory>
#include <set>

#include "base/testing/refused.h"
#include "base/time.h"
#include "harness.h"

namespace gpusonde::cupti {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

struct Consumer {
  GpuEvents events;
  Received received;

  // The kernels of all sessions since they were joined, by their totals.
  uint64_t CountTotals() const {
    uint64_t count = 0;
    for (const auto& [key, sum] : received.totals) {
      if (std::get<Total::Of>(key) != Total::Of::kKernel) continue;
      const auto earlier = received.earlier_totals.find(key);
      count += sum.count - (earlier == received.earlier_totals.end() ? 0 : earlier->second.count);
    }
    return count;
  }

  // All received work has names, and matches the totals.
  void ExpectWhole(const std::string& who) {
    EXPECT_THAT(received.kernels, Not(IsEmpty())) << who;
    for (const Received::KernelOf& kernel : received.kernels)
      ASSERT_TRUE(kernel.kernel_name == "alpha" || kernel.kernel_name == "beta") << who;
    std::set<std::string> devices;
    for (const Received::DeviceOf& device : received.devices)
      devices.emplace(reinterpret_cast<const char*>(device.uuid.data()), device.uuid.size());
    EXPECT_THAT(devices, SizeIs(1)) << who;
    EXPECT_THAT(received.begins, SizeIs(1)) << who;
    for (const SessionEnd& end : received.ends) EXPECT_EQ(end.reason, EndReason::kExit) << who;
    EXPECT_EQ(received.kernels.size(), CountTotals()) << who;
    ExpectNothingLost(events.DrainDrops());
  }
};

// Makes it look like a rank of a recorded program, so that no governor ends its sessions.
const std::vector<std::string> kUngoverned = {"GPUSONDE_INJECT_SOCKET=99:1"};

class Consumers : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
    SKIP_WHERE_REFUSED(tables);
    tables_.emplace(std::move(*tables));
    SKIP_WHERE_REFUSED(GpuEvents::Create({.library_path = OwnLibrary::Path()}, &*tables_));
  }

  std::unique_ptr<Consumer> Create(bool every_process = false) {
    Result<GpuEvents> events =
        GpuEvents::Create({.library_path = OwnLibrary::Path(), .every_process = every_process}, &*tables_);
    return std::make_unique<Consumer>(std::move(*events), Received{});
  }

  static void Attach(Consumer& consumer, int32_t pid) {
    EXPECT_TRUE(consumer.events.AttachBeforeExec(pid).has_value());
    EXPECT_TRUE(consumer.events.EnableLaunchStacks(pid).has_value());
  }

  static void Join(Consumer& consumer, int32_t pid) {
    EXPECT_TRUE(consumer.events.Consider(pid, OwnLibrary::Path()).value_or(false));
    EXPECT_TRUE(consumer.events.EnableLaunchStacks(pid).has_value());
  }

  // All consumers drain the client's events for this long.
  static void Drain(Client& client, const std::vector<Consumer*>& consumers, int milliseconds) {
    for (int passed = 0; passed < milliseconds; passed += 10 * static_cast<int>(consumers.size()))
      for (Consumer* consumer : consumers)
        client.Drain(consumer->events, consumer->received, std::chrono::milliseconds(10));
  }

  // All consumers drain the client's events until done(): under load, joining takes seconds.
  static void Await(Client& client, const std::vector<Consumer*>& consumers,
                    const std::function<bool()>& done) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!done() && std::chrono::steady_clock::now() < deadline) Drain(client, consumers, 100);
    ASSERT_TRUE(done());
  }
  static void AwaitKernels(Client& client, const std::vector<Consumer*>& consumers,
                           const Consumer& consumer) {
    Await(client, consumers, [&] { return !consumer.received.kernels.empty(); });
  }

  static void Finish(Client& client, const std::vector<Consumer*>& consumers, int milliseconds) {
    Drain(client, consumers, milliseconds);
    EXPECT_EQ(client.Finish(consumers[0]->events, consumers[0]->received), 0);
    for (Consumer* consumer : consumers)
      client.Drain(consumer->events, consumer->received, std::chrono::milliseconds(20));
  }

  std::optional<ebpf::StackTables> tables_;
};

TEST_F(Consumers, ThatJoinLateReceiveNames) {
  const auto first = Create();
  const auto second = Create();
  Client client({"kernels=100", "rate=2000,90", "sync", "wait=300"}, kUngoverned,
                [&](int32_t pid) { Attach(*first, pid); });
  AwaitKernels(client, {first.get()}, *first);
  Join(*second, client.pid());
  AwaitKernels(client, {first.get(), second.get()}, *second);
  Drain(client, {first.get(), second.get()}, 800);
  const auto third = Create(true);
  Join(*third, client.pid());
  AwaitKernels(client, {first.get(), second.get(), third.get()}, *third);
  client.EndStep();
  Finish(client, {first.get(), second.get(), third.get()}, 200);
  first->ExpectWhole("the first");
  second->ExpectWhole("the second");
  third->ExpectWhole("the one of every process");
  EXPECT_EQ(fmt::format("{}\n", first->received.kernels.size() - 100), client.printed());
  EXPECT_FALSE(first->received.begins[0].joined);
  EXPECT_TRUE(second->received.begins[0].joined);
  EXPECT_GT(second->received.begins[0].begin_ns, first->received.begins[0].begin_ns);
  EXPECT_GT(second->received.kernels.size(), third->received.kernels.size());
  EXPECT_THAT(second->received.calls, Not(IsEmpty()));
  for (const Received::CallOf& call : second->received.calls) EXPECT_TRUE(call.stack_taken);
}

TEST_F(Consumers, ThatLeaveDoNotAffectOthers) {
  const auto first = Create();
  auto second = Create(true);
  const auto third = Create();
  Client client({"rate=2000,90", "sync", "wait=300"}, kUngoverned, [&](int32_t pid) { Attach(*first, pid); });
  AwaitKernels(client, {first.get()}, *first);
  Join(*second, client.pid());
  Join(*third, client.pid());
  AwaitKernels(client, {first.get(), second.get(), third.get()}, *second);
  AwaitKernels(client, {first.get(), second.get(), third.get()}, *third);
  second.reset();
  Drain(client, {first.get(), third.get()}, 1000);
  client.EndStep();
  Finish(client, {first.get(), third.get()}, 200);
  first->ExpectWhole("the first");
  third->ExpectWhole("the third");
  EXPECT_EQ(fmt::format("{}\n", first->received.kernels.size()), client.printed());
}

// Like `up` that is restarted while `record` runs: the process is not affected.
TEST_F(Consumers, ThatReturnJoinAgain) {
  const auto first = Create();
  auto second = Create(true);
  EXPECT_TRUE(second->events.Consider(::getpid(), OwnLibrary::Path()).value_or(false));
  Client client({"rate=2000,90", "sync", "wait=300"}, kUngoverned, [&](int32_t pid) { Attach(*first, pid); });
  AwaitKernels(client, {first.get(), second.get()}, *second);
  EXPECT_THAT(second->received.begins, SizeIs(1));
  second.reset();
  Drain(client, {first.get()}, 500);
  second = Create(true);
  Join(*second, client.pid());
  AwaitKernels(client, {first.get(), second.get()}, *second);
  Drain(client, {first.get(), second.get()}, 1000);
  client.EndStep();
  Finish(client, {first.get(), second.get()}, 200);
  first->ExpectWhole("the first");
  second->ExpectWhole("the one that came back");
}

// The place of a communicator that was destroyed meanwhile is another's.
TEST_F(Consumers, ThatReturnReceiveNoCollectivesOfCommunicatorsThatAreGone) {
  auto first = Create();
  Client client({"join=17", "call", "signal", "begin", "leave", "join=34", "signal"}, kUngoverned,
                [&](int32_t pid) { Attach(*first, pid); });
  Await(client, {first.get()}, [&] { return !first->received.collectives.empty(); });
  ASSERT_THAT(first->received.collectives, Not(IsEmpty()));
  EXPECT_EQ(first->received.collectives[0].communicator, 17U);
  first.reset();
  client.EndStep();
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  const auto second = Create(true);
  Join(*second, client.pid());
  Await(client, {second.get()}, [&] { return !second->received.communicators.empty(); });
  client.EndStep();
  Finish(client, {second.get()}, 200);
  ASSERT_THAT(second->received.communicators, Not(IsEmpty()));
  EXPECT_EQ(second->received.communicators[0].communicator, 34U);
  EXPECT_THAT(second->received.collectives, IsEmpty());
}

// Nobody saw which modules were unloaded meanwhile, and CUPTI, which is not finalized in a program with
// graphs, gives the functions that are loaded next the names of earlier ones.
TEST_F(Consumers, ThatReturnReceiveTheNamesOfWhatWasLoadedMeanwhile) {
  auto first = Create();
  Client client({"graph=2,1", "wait=700", "swap", "wait=300"}, kUngoverned,
                [&](int32_t pid) { Attach(*first, pid); });
  Await(client, {first.get()},
        [&] { return first->received.TotalOf(Total::Of::kKernel, "older").count == 1; });
  first.reset();
  client.EndStep();
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  const auto second = Create(true);
  Join(*second, client.pid());
  Await(client, {second.get()}, [&] { return !second->received.begins.empty(); });
  client.EndStep();
  Finish(client, {second.get()}, 200);
  EXPECT_EQ(second->received.TotalOf(Total::Of::kKernel, "newer").count, 1U);
}

// Detaching takes 0.1 s per probe: totals may be sent when the probe of the records is detached, theirs not
// yet.
TEST_F(Consumers, ThatStopReceiveNothingOfWhatIsReportedWhileTheyDetach) {
  const auto stopping = Create();
  Client client({"rate=2000,3", "sync"}, kUngoverned, [&](int32_t pid) { Attach(*stopping, pid); });
  Drain(client, {stopping.get()}, 1200);
  stopping->events.Stop();
  const int64_t stopped_ns = MonotonicNow();
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  Finish(client, {stopping.get()}, 10);
  ASSERT_THAT(stopping->received.calls, Not(IsEmpty()));
  for (const Received::CallOf& call : stopping->received.calls) ASSERT_LE(call.end_ns, stopped_ns);
  EXPECT_LE(stopping->CountTotals(), stopping->received.kernels.size());
}

// Recorders follow new processes with a delay, so the rank starts its work without one.
TEST_F(Consumers, OfARankWithoutASocketMayComeTwoSecondsLate) {
  GPUSONDE_NOT_UNDER_TSAN("joining takes longer than the program waits for consumers");
  const auto recorder = Create();
  Client client({"kernels=1000", "sync", "wait=3000", "kernels=500", "sync", "wait=300"}, kUngoverned);
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  Join(*recorder, client.pid());
  Finish(client, {recorder.get()}, 2000);
  recorder->ExpectWhole("the recorder");
  EXPECT_EQ(recorder->received.kernels.size(), 1500U) << "from its first kernel on";
  EXPECT_FALSE(recorder->received.begins[0].joined);
}

TEST_F(Consumers, OfARankThatEndsBeforeTheyComeAreAwaited) {
  GPUSONDE_NOT_UNDER_TSAN("joining takes longer than the program waits for consumers");
  const auto recorder = Create();
  Client client({"kernels=1000", "sync"}, {"GPUSONDE_INJECT_SOCKET=99:1:" + std::to_string(::getpid())});
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  Join(*recorder, client.pid());
  Finish(client, {recorder.get()}, 1000);
  recorder->ExpectWhole("the recorder");
  EXPECT_EQ(recorder->received.kernels.size(), 1000U);
}

}  // namespace
}  // namespace gpusonde::cupti
