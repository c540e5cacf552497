// SPDX-License-Identifier: Apache-2.0
// Several processes on one device, some of which are killed.
#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "simgpu/tests/client.h"

namespace simgpu::tests {
namespace {

// Passes a byte from one process to another; end of file when the other has ended.
struct Pipe {
  Pipe() { EXPECT_EQ(::pipe(ends.data()), 0); }
  void Signal() {
    const char byte = 1;
    EXPECT_EQ(::write(ends[1], &byte, 1), 1);
  }
  void Wait() {
    char byte = 0;
    EXPECT_EQ(::read(ends[0], &byte, 1), 1);
  }
  std::array<int, 2> ends{};
};

TEST(Processes, TakeTurnsOnTheDevice) {
  const TestMachine machine;
  Pipe launched;
  Pipe measured;
  const pid_t first = StartChild({}, [&] {
    Client client;
    client.Load();
    client.Launch(200 * kMs, client.stream, 1);
    launched.Signal();
    measured.Wait();
  });
  InChild({}, [&] {
    Client client;
    client.Load();
    launched.Wait();
    const int64_t begin_ns = MonotonicNs();
    client.Launch(10 * kMs, client.stream, 1);
    client.cuStreamSynchronize(client.stream);
    EXPECT_GE(MonotonicNs() - begin_ns, 100 * kMs) << "the other process has the device";
    EXPECT_EQ(client.Account().kernel_ns, 10 * kMs) << "what it did itself";
  });
  measured.Signal();
  EXPECT_EQ(ExitStatus(first), 0);
}

TEST(Processes, AKilledProcessLeavesNeitherWorkNorMemoryNorALock) {
  const TestMachine machine;
  Pipe ready;
  const pid_t victim = StartChild({}, [&] {
    Client client;
    client.Load();
    uint64_t memory = 0;
    client.cuMemAlloc_v2(&memory, 1 << 30);
    client.Launch(3600'000 * kMs, client.stream, 1);  // an hour
    ready.Signal();
    for (;;) client.Launch(1000, client.stream, 1);  // the device's lock is taken all the time
  });
  ready.Wait();
  ::usleep(50'000);
  ::kill(victim, SIGKILL);
  EXPECT_EQ(ExitStatus(victim), 128 + SIGKILL);
  InChild({}, [] {
    Client client;
    client.Load();
    auto* info = Symbol<decltype(::cuMemGetInfo_v2)>(client.cuda, "cuMemGetInfo_v2");
    size_t free_bytes = 0;
    size_t total = 0;
    EXPECT_EQ(info(&free_bytes, &total), 0);
    EXPECT_EQ(total - free_bytes, size_t{560} << 20) << "what the driver reserves, and nothing else";
    const int64_t begin_ns = MonotonicNs();
    client.Launch(10 * kMs, client.stream, 1);
    client.cuStreamSynchronize(client.stream);
    EXPECT_LT(MonotonicNs() - begin_ns, 1'000 * kMs);
  });
}

TEST(Processes, KillingManyAtAnyMomentKeepsTheDeviceUsable) {
  const TestMachine machine;
  for (int round = 0; round < 20; ++round) {
    const pid_t victim = StartChild({}, [] {
      Client client;
      client.Load();
      for (;;) client.Launch(5'000, client.stream, 100);
    });
    ::usleep(static_cast<useconds_t>(10'000 + 1'700 * round));
    ::kill(victim, SIGKILL);
    ExitStatus(victim);
  }
  InChild({}, [] {
    Client client;
    client.Load();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(client.Launch(10'000, client.stream), 0);
    EXPECT_EQ(client.cuStreamSynchronize(client.stream), 0);
    EXPECT_EQ(client.Account().kernel_ns, 100 * 10'000);
  });
}

TEST(Processes, AnIdleClientCostsNoCpuTime) {
  const TestMachine machine;
  InChild({}, [] {
    const auto threads = [] {
      return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    };
    const auto threads_before = threads();
    Client client;
    client.Load();
    client.Launch(1000, client.stream);
    client.cuStreamSynchronize(client.stream);
    timespec before{};
    timespec after{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
    ::usleep(300'000);
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
    EXPECT_LT((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec, kMs);
    EXPECT_EQ(threads(), threads_before) << "no thread spins in the background";
  });
}

TEST(Processes, TheLogHasEveryOperationOfAllProcesses) {
  const TestMachine machine;
  const std::string path = testing::TempDir() + "simgpu-log-" + std::to_string(::getpid());
  for (int i = 0; i < 2; ++i)
    InChild({{"SIMGPU_LOG", path}}, [] {
      Client client;
      client.Load();
      for (int k = 0; k < 50; ++k) client.Launch(1'000, client.stream);
      client.cuStreamSynchronize(client.stream);
      ::exit(testing::Test::HasFailure() ? 1 : 0);  // the log is flushed as the program ends
    });
  std::ifstream file(path);
  int kernels = 0;
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("kernel\t") && line.ends_with("\t_Z5timedm")) ++kernels;
  EXPECT_EQ(kernels, 100);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace simgpu::tests
