// SPDX-License-Identifier: Apache-2.0
// CUPTI's activity records, and the irregular ways in which they are delivered.
#include <algorithm>
#include <latch>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "simgpu/tests/tool.h"

namespace simgpu::tests {
namespace {

constexpr uint32_t kKernels = GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL;

void LaunchMany(Client& client, int count, uint64_t duration_ns) {
  for (int i = 0; i < count; ++i) ASSERT_EQ(client.Launch(duration_ns, client.stream), 0);
}

TEST(CuptiActivity, TotalsMatchTheDevicesToTheNanosecond) {
  for (const char* library : {"libcupti.so.12", "libcupti.so.13"}) {
    const TestMachine machine;
    InChild({}, [&] {
      Client client;
      Tool tool(library);
      tool.EnableKind(kKernels);
      tool.EnableKind(GPUSONDE_CUPTI_KIND_MEMCPY);
      tool.EnableKind(GPUSONDE_CUPTI_KIND_MEMSET);
      client.Load();
      uint64_t memory = 0;
      client.cuMemAlloc_v2(&memory, 1 << 20);
      void* pinned = nullptr;
      client.cuMemAllocHost_v2(&pinned, 1 << 20);
      for (uint64_t i = 0; i < 3000; ++i) {
        client.Launch(1000 + i, client.stream);
        if (i % 10 == 0) client.cuMemcpyHtoDAsync_v2(memory, pinned, 1000 + i, client.stream);
        if (i % 20 == 0) client.cuMemsetD8Async(memory, 0, 1 << 20, client.stream);
      }
      client.cuStreamSynchronize(client.stream);
      EXPECT_EQ(tool.Flush(), 0);
      const SimgpuAccount account = client.Account();
      EXPECT_EQ(static_cast<int64_t>(tool.kernels.size()), account.kernels);
      EXPECT_EQ(tool.KernelNs(), account.kernel_ns);
      int64_t copy_ns = 0;
      int64_t bytes = 0;
      for (const auto& copy : tool.copies) {
        copy_ns += static_cast<int64_t>(copy.end - copy.start);
        bytes += static_cast<int64_t>(copy.bytes);
        EXPECT_EQ(copy.copy_kind, GPUSONDE_CUPTI_MEMCPY_HTOD);
        EXPECT_EQ(copy.source_kind, GPUSONDE_CUPTI_MEMORY_PINNED);
      }
      EXPECT_EQ(copy_ns, account.copy_ns);
      EXPECT_EQ(bytes, account.copy_bytes);
      int64_t memset_ns = 0;
      for (const auto& memset : tool.memsets) memset_ns += static_cast<int64_t>(memset.end - memset.start);
      EXPECT_EQ(static_cast<int64_t>(tool.memsets.size()), account.memsets);
      EXPECT_EQ(memset_ns, account.memset_ns);
      EXPECT_TRUE(
          std::all_of(tool.names.begin(), tool.names.end(), [](const auto& n) { return n == "_Z5timedm"; }));
    });
  }
}

TEST(CuptiActivity, TimestampsAreInTheRegisteredClock) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    EXPECT_EQ(Symbol<gpusonde_cupti_activity_register_timestamp_callback_fn>(
                  tool.cupti, "cuptiActivityRegisterTimestampCallback")(
                  [] { return static_cast<uint64_t>(MonotonicNs() + 1'000'000'000'000); }),
              0);
    tool.EnableKind(kKernels);
    client.Load();
    const auto begin_ns = static_cast<uint64_t>(MonotonicNs() + 1'000'000'000'000);
    LaunchMany(client, 1, 1'000'000);
    client.cuStreamSynchronize(client.stream);
    const auto end_ns = static_cast<uint64_t>(MonotonicNs() + 1'000'000'000'000);
    tool.Flush();
    ASSERT_EQ(tool.kernels.size(), 1U);
    // Two clock readings lie between this clock and the device's.
    EXPECT_GE(tool.kernels[0].start + 5'000, begin_ns);
    EXPECT_LE(tool.kernels[0].end, end_ns + 5'000);
  });
}

TEST(CuptiActivity, RecordsComeLateAndOutOfOrder) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_LATE_US", "20000"}, {"SIMGPU_CUPTI_REORDER", "0.3"}, {"SIMGPU_CUPTI_EARLY", "0"}},
          [] {
            Client client;
            Tool tool;
            tool.EnableKind(kKernels);
            client.Load();
            LaunchMany(client, 2000, 20'000);
            client.cuStreamSynchronize(client.stream);
            {
              const std::lock_guard lock(tool.mutex);
              EXPECT_GT(tool.completed, 0U) << "full buffers come by themselves";
              EXPECT_LT(tool.kernels.size(), 2000U) << "and the newest don't";
            }
            tool.Flush();
            EXPECT_EQ(tool.kernels.size(), 2000U);
            EXPECT_FALSE(std::is_sorted(tool.kernels.begin(), tool.kernels.end(),
                                        [](const auto& a, const auto& b) { return a.start < b.start; }));
            std::set<uint32_t> correlations;
            for (const auto& kernel : tool.kernels) correlations.insert(kernel.correlation_id);
            EXPECT_EQ(correlations.size(), 2000U);
          });
}

TEST(CuptiActivity, SomeRecordsComeBeforeTheLaunchReturns) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_EARLY", "1"}}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(kKernels);
    client.Load();
    for (size_t i = 0; i < 10; ++i) {
      LaunchMany(client, 1, 2'000);
      EXPECT_EQ(tool.kernels.size(), i + 1);
    }
  });
}

TEST(CuptiActivity, RecordsWithoutABufferAreCountedAsDropped) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_EARLY", "0"}}, [] {
    Client client;
    Tool tool;
    tool.no_room = true;
    tool.EnableKind(kKernels);
    client.Load();
    LaunchMany(client, 100, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    tool.no_room = false;
    LaunchMany(client, 50, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    EXPECT_EQ(tool.kernels.size(), 50U);
    EXPECT_EQ(tool.dropped, 100U);
  });
}

TEST(CuptiActivity, Of13HasABufferForEachThread) {
  for (const auto& [library, buffers] : {std::pair("libcupti.so.12", 1U), std::pair("libcupti.so.13", 8U)}) {
    const TestMachine machine;
    InChild({{"SIMGPU_CUPTI_EARLY", "0"}}, [&] {
      Client client;
      Tool tool(library);
      tool.EnableKind(kKernels);
      client.Load();
      std::vector<std::thread> threads;
      std::latch launched(8);  // a thread that begins when another has ended may be taken for it
      for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] {
          client.cuCtxSetCurrent(client.context);
          LaunchMany(client, 2, 1'000);
          launched.arrive_and_wait();
        });
      for (std::thread& thread : threads) thread.join();
      client.cuStreamSynchronize(client.stream);
      tool.Flush();
      EXPECT_EQ(tool.kernels.size(), 16U);
      EXPECT_EQ(tool.completed, buffers) << library;
    });
  }
}

TEST(CuptiActivity, DropsRecordsAndTimestampsAsConfigured) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_DROP", "0.2"}, {"SIMGPU_CUPTI_ZERO", "0.2"}}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(kKernels);
    client.Load();
    LaunchMany(client, 1000, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    EXPECT_EQ(tool.kernels.size() + tool.dropped, 1000U);
    EXPECT_GT(tool.dropped, 100U);
    const auto zeros = std::count_if(tool.kernels.begin(), tool.kernels.end(),
                                     [](const auto& kernel) { return kernel.start == 0 && kernel.end == 0; });
    EXPECT_GT(zeros, 80);
    EXPECT_LT(zeros, 300);
  });
}

TEST(CuptiActivity, AForcedFlushDeliversUnfinishedOperationsWithoutTimes) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(kKernels);
    client.Load();
    LaunchMany(client, 1, 300'000'000);
    tool.Flush();
    EXPECT_TRUE(tool.kernels.empty());
    tool.Flush(GPUSONDE_CUPTI_FLAG_FLUSH_FORCED);
    ASSERT_EQ(tool.kernels.size(), 1U);
    EXPECT_EQ(tool.kernels[0].end, 0U);
  });
}

TEST(CuptiActivity, NamesAreFreedWithTheirModule) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_EARLY", "0"}}, [] {
    Client client;
    Tool tool;
    tool.read_names = false;
    tool.EnableKind(kKernels);
    client.Load();
    const char* name = nullptr;
    Symbol<decltype(::cuFuncGetName)>(client.cuda, "cuFuncGetName")(&name, client.timed);
    LaunchMany(client, 1, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    ASSERT_EQ(tool.kernels.size(), 1U);
    EXPECT_EQ(tool.kernels[0].name, name) << "the record points into the module";
    EXPECT_EQ(Symbol<int32_t(void*)>(client.cuda, "cuModuleUnload")(client.module), 0);
  });
}

TEST(CuptiActivity, TheKernelKindRunsKernelsOneByOne) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(GPUSONDE_CUPTI_KIND_KERNEL);
    client.Load();
    void* other = nullptr;
    client.cuStreamCreate(&other, GPUSONDE_CU_STREAM_NON_BLOCKING);
    for (int i = 0; i < 5; ++i) {
      client.Launch(2'000'000, client.stream, 1);
      client.Launch(2'000'000, other, 1);
    }
    client.cuCtxSynchronize();
    tool.Flush();
    ASSERT_EQ(tool.kernels.size(), 10U);
    std::sort(tool.kernels.begin(), tool.kernels.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    for (size_t i = 1; i < tool.kernels.size(); ++i)
      EXPECT_GE(tool.kernels[i].start, tool.kernels[i - 1].end);
  });
}

TEST(CuptiActivity, SynchronisationsAndApiCallsAreRecorded) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(GPUSONDE_CUPTI_KIND_SYNCHRONIZATION);
    tool.EnableKind(GPUSONDE_CUPTI_KIND_DRIVER);
    client.Load();
    LaunchMany(client, 1, 5'000'000);
    const size_t before = tool.records;
    client.cuStreamSynchronize(client.stream);
    client.cuCtxSynchronize();
    tool.Flush();
    ASSERT_EQ(tool.syncs.size(), 2U);
    std::sort(tool.syncs.begin(), tool.syncs.end(),
              [](const auto& a, const auto& b) { return a.start < b.start; });
    EXPECT_EQ(tool.syncs[0].type, static_cast<uint32_t>(GPUSONDE_CUPTI_SYNC_STREAM));
    EXPECT_GT(tool.syncs[0].end - tool.syncs[0].start, 3'000'000U);
    EXPECT_EQ(tool.syncs[1].type, static_cast<uint32_t>(GPUSONDE_CUPTI_SYNC_CONTEXT));
    EXPECT_EQ(tool.syncs[1].stream_id, GPUSONDE_CUPTI_INVALID_ID);
    EXPECT_GT(tool.records, before + 4);
  });
}

TEST(CuptiActivity, TheLastToolToRegisterGetsTheBuffers) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool first;
    first.EnableKind(kKernels);
    Tool second;  // the same process: its callbacks replace the first's
    client.Load();
    LaunchMany(client, 10, 1'000);
    client.cuStreamSynchronize(client.stream);
    second.Flush();
    EXPECT_EQ(first.kernels.size(), 0U);
    EXPECT_EQ(second.kernels.size(), 10U);
  });
}

TEST(CuptiActivity, AfterFinalizeNothingIsRecordedAndItCanStartAgain) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    tool.EnableKind(kKernels);
    client.Load();
    EXPECT_EQ(Symbol<gpusonde_cupti_finalize_fn>(tool.cupti, "cuptiFinalize")(), 0);
    LaunchMany(client, 10, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    EXPECT_TRUE(tool.kernels.empty());
    tool.EnableKind(kKernels);  // without buffers
    LaunchMany(client, 10, 1'000);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    EXPECT_TRUE(tool.kernels.empty());
    Tool again;
    again.EnableKind(kKernels);
    LaunchMany(client, 10, 1'000);
    client.cuStreamSynchronize(client.stream);
    again.Flush();
    EXPECT_EQ(again.kernels.size(), 10U);
  });
}

// As on an H200: CUPTI's memory, which the graph writes to, is freed.
TEST(CuptiActivity, FinalizingWhileAGraphRunsThatWasRecordedOnceEndsTheProgram) {
  const TestMachine machine;
  for (const bool recorded : {false, true}) {
    const pid_t child = StartChild({}, [recorded] {
      Client client;
      Tool tool;
      EXPECT_EQ(tool.Subscribe(), 0);
      client.Load();
      void* graph = nullptr;
      void* exec = nullptr;
      client.cuStreamBeginCapture_v2(client.stream, 0);
      client.Launch(200 * kMs, client.stream);
      client.cuStreamEndCapture(client.stream, &graph);
      client.cuGraphInstantiateWithFlags(&exec, graph, 0);
      if (recorded) {
        tool.EnableKind(kKernels);
        client.cuGraphLaunch(exec, client.stream);
        client.cuStreamSynchronize(client.stream);
        Symbol<gpusonde_cupti_activity_kind_fn>(tool.cupti, "cuptiActivityDisable")(kKernels);
      }
      client.cuGraphLaunch(exec, client.stream);  // not recorded
      Symbol<gpusonde_cupti_finalize_fn>(tool.cupti, "cuptiFinalize")();
      client.cuStreamSynchronize(client.stream);
    });
    EXPECT_EQ(ExitStatus(child), recorded ? 128 + SIGSEGV : 0);
  }
}

}  // namespace
}  // namespace simgpu::tests
