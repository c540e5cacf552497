// SPDX-License-Identifier: Apache-2.0
// CUPTI's callbacks.
#include <set>
#include <string>
#include <thread>

#include "simgpu/tests/tool.h"

namespace simgpu::tests {
namespace {

struct Seen {
  uint32_t domain;
  uint32_t id;
  uint32_t site;
  uint32_t correlation;
  std::string function;
  std::string symbol;
};

std::function<void(uint32_t, uint32_t, const void*)> Into(std::vector<Seen>& seen) {
  return [&seen](uint32_t domain, uint32_t id, const void* data) {
    const auto& call = *static_cast<const gpusonde_cupti_callback_data*>(data);
    seen.push_back({domain, id, call.site, call.correlation_id, call.function_name,
                    call.symbol_name == nullptr ? "" : call.symbol_name});
  };
}

TEST(CuptiCallbacks, ASecondSubscriberIsRejectedWithTheNameOfTheFirst) {
  const TestMachine machine;
  InChild({}, [] {
    const Client client;
    Tool tool;
    auto* subscribe = Symbol<gpusonde_cupti_subscribe_v2_fn>(tool.cupti, "cuptiSubscribe_v2");
    gpusonde_cupti_subscriber_handle first = nullptr;
    gpusonde_cupti_subscriber_handle second = nullptr;
    gpusonde_cupti_subscriber_params params{sizeof params, "the other profiler", nullptr, 0};
    const auto nothing = [](void*, uint32_t, uint32_t, const void*) {};
    EXPECT_EQ(subscribe(&first, nothing, nullptr, &params), 0);
    char name[GPUSONDE_CUPTI_OLD_SUBSCRIBER_NAME_BYTES] = "";
    params = {sizeof params, "gpusonde", name, sizeof name};
    EXPECT_EQ(subscribe(&second, nothing, nullptr, &params),
              GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_STREQ(name, "CUPTI for the other profiler");
    // Another libcupti in the same process can't subscribe either.
    void* other = Open("libcupti.so.12");
    EXPECT_EQ(Symbol<gpusonde_cupti_subscribe_fn>(other, "cuptiSubscribe")(&second, nothing, nullptr),
              GPUSONDE_CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
    EXPECT_EQ(Symbol<gpusonde_cupti_unsubscribe_fn>(tool.cupti, "cuptiUnsubscribe")(first), 0);
    EXPECT_EQ(subscribe(&second, nothing, nullptr, nullptr), 0);
  });
}

TEST(CuptiCallbacks, ALaunchIsReportedAtEntryAndExitWithItsKernelsName) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    std::vector<Seen> seen;
    tool.on_callback = Into(seen);
    ASSERT_EQ(tool.Subscribe(), 0);
    client.Load();
    auto* enable = Symbol<gpusonde_cupti_enable_callback_fn>(tool.cupti, "cuptiEnableCallback");
    constexpr uint32_t kCuLaunchKernel = 307;
    EXPECT_EQ(enable(1, tool.subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel), 0);
    EXPECT_EQ(enable(1, tool.subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, 5000),
              GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER);
    client.Launch(1000, client.stream);
    client.cuStreamSynchronize(client.stream);  // not enabled
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(seen[0].site, static_cast<uint32_t>(GPUSONDE_CUPTI_API_ENTER));
    EXPECT_EQ(seen[1].site, static_cast<uint32_t>(GPUSONDE_CUPTI_API_EXIT));
    EXPECT_EQ(seen[0].function, "cuLaunchKernel");
    EXPECT_EQ(seen[0].symbol, "_Z5timedm");
    EXPECT_EQ(seen[0].correlation, seen[1].correlation);
    EXPECT_EQ(enable(0, tool.subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel), 0);
    client.Launch(1000, client.stream);
    EXPECT_EQ(seen.size(), 2U);
    tool.Unsubscribe();
    EXPECT_EQ(enable(1, tool.subscriber, GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel),
              GPUSONDE_CUPTI_ERROR_INVALID_PARAMETER);
  });
}

TEST(CuptiCallbacks, DriverCallsNestUnderTheRuntimeCallThatMadeThem) {
  for (const char* runtime : {"libcudart.so.12", "libcudart.so.13"}) {
    const TestMachine machine;
    InChild({}, [&] {
      const Client client;
      void* cudart = Open(runtime);
      Tool tool;
      std::vector<Seen> seen;
      tool.on_callback = Into(seen);
      ASSERT_EQ(tool.Subscribe(), 0);
      tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_DRIVER);
      tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_RUNTIME);
      EXPECT_EQ(Symbol<int32_t()>(cudart, "cudaDeviceSynchronize")(), 0);
      ASSERT_EQ(seen.size(), 4U);
      const std::vector<std::pair<std::string, uint32_t>> expected = {{"cudaDeviceSynchronize", 0},
                                                                      {"cuCtxSynchronize", 0},
                                                                      {"cuCtxSynchronize", 1},
                                                                      {"cudaDeviceSynchronize", 1}};
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(seen[i].function, expected[i].first);
        EXPECT_EQ(seen[i].site, expected[i].second);
        EXPECT_EQ(seen[i].correlation, seen[0].correlation);
      }
    });
  }
}

TEST(CuptiCallbacks, TheCorrelationIdOfALaunchIsThatOfItsRecordAndWraps) {
  const TestMachine machine;
  InChild({{"SIMGPU_CORRELATION_START", "4294967200"}}, [] {
    Client client;
    Tool tool;
    std::vector<Seen> seen;
    tool.on_callback = Into(seen);
    ASSERT_EQ(tool.Subscribe(), 0);
    client.Load();
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_DRIVER);
    tool.EnableKind(GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL);
    for (int i = 0; i < 300; ++i) client.Launch(1000, client.stream);
    client.cuStreamSynchronize(client.stream);
    tool.Flush();
    std::set<uint32_t> launched;
    for (const Seen& call : seen)
      if (call.function == "cuLaunchKernel") launched.insert(call.correlation);
    std::set<uint32_t> recorded;
    for (const auto& kernel : tool.kernels) recorded.insert(kernel.correlation_id);
    EXPECT_EQ(launched.size(), 300U);
    EXPECT_EQ(recorded, launched);
    EXPECT_FALSE(recorded.contains(0));
    EXPECT_TRUE(recorded.contains(1)) << "the ids went around";
    EXPECT_GT(*recorded.rbegin(), 4'294'967'200U);
  });
}

TEST(CuptiCallbacks, TheEntryCanPassAWordToTheExit) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    int matched = 0;
    tool.on_callback = [&](uint32_t, uint32_t, const void* data) {
      const auto& call = *static_cast<const gpusonde_cupti_callback_data*>(data);
      if (call.site == GPUSONDE_CUPTI_API_ENTER)
        *call.correlation_data = 1000 + call.correlation_id;
      else if (*call.correlation_data == 1000 + call.correlation_id &&
               *static_cast<int32_t*>(call.function_return_value) == 0)
        ++matched;
    };
    ASSERT_EQ(tool.Subscribe(), 0);
    client.Load();
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_DRIVER);
    for (int i = 0; i < 5; ++i) client.Launch(1000, client.stream);
    EXPECT_EQ(matched, 5);
  });
}

TEST(CuptiCallbacks, CallbacksRunOnTheCallingThread) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    tool.on_callback = [&](uint32_t, uint32_t, const void*) {
      const std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
    };
    ASSERT_EQ(tool.Subscribe(), 0);
    client.Load();
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_DRIVER);
    std::vector<std::thread> workers;
    for (int i = 0; i < 4; ++i)
      workers.emplace_back([&] {
        client.cuCtxSetCurrent(client.context);
        for (int k = 0; k < 200; ++k) client.Launch(1000, client.stream);
      });
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(threads.size(), 4U);
    client.cuStreamSynchronize(client.stream);
    EXPECT_EQ(client.Account().kernels, 800);
  });
}

TEST(CuptiCallbacks, AnyCallCanBeMadeToFailOrToTakeLong) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_FAIL", "cuptiSubscribe:8@2,cuptiActivityFlushAll:999"},
           {"SIMGPU_CUPTI_DELAY", "cuptiActivityFlushAll:50"}},
          [] {
            const Client client;
            Tool tool;
            EXPECT_EQ(tool.Subscribe(), 0);
            tool.Unsubscribe();
            EXPECT_EQ(tool.Subscribe(), GPUSONDE_CUPTI_ERROR_OUT_OF_MEMORY) << "the second time";
            EXPECT_EQ(tool.Subscribe(), 0);
            const int64_t begin_ns = MonotonicNs();
            EXPECT_EQ(tool.Flush(), GPUSONDE_CUPTI_ERROR_UNKNOWN);
            EXPECT_GE(MonotonicNs() - begin_ns, 50'000'000);
          });
}

TEST(CuptiCallbacks, WithASetCostEveryCallbackTakesThatLong) {
  const TestMachine machine;
  InChild({{"SIMGPU_CUPTI_CALLBACK_NS", "100000"}}, [] {
    Client client;
    Tool tool;
    tool.on_callback = [](uint32_t, uint32_t, const void*) {};
    ASSERT_EQ(tool.Subscribe(), 0);
    client.Load();
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_DRIVER);
    const int64_t begin_ns = MonotonicNs();
    for (int i = 0; i < 20; ++i) client.Launch(1000, client.stream);
    EXPECT_GE(MonotonicNs() - begin_ns, 20 * 2 * 100'000);
  });
}

TEST(CuptiCallbacks, ObjectsAreAnnouncedWithIdsThatTheRecordsUse) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    Tool tool;
    std::vector<uint32_t> resources;
    tool.on_callback = [&](uint32_t, uint32_t id, const void*) { resources.push_back(id); };
    ASSERT_EQ(tool.Subscribe(), 0);
    tool.EnableDomain(GPUSONDE_CUPTI_DOMAIN_RESOURCE);
    tool.EnableKind(GPUSONDE_CUPTI_KIND_CONCURRENT_KERNEL);
    client.Load();
    void* stream = nullptr;
    client.cuStreamCreate(&stream, 0);
    EXPECT_EQ(resources, (std::vector<uint32_t>{GPUSONDE_CUPTI_RESOURCE_MODULE_LOADED,
                                                GPUSONDE_CUPTI_RESOURCE_STREAM_CREATED}));
    uint32_t stream_id = 0;
    EXPECT_EQ(Symbol<int32_t(void*, void*, uint32_t*)>(tool.cupti, "cuptiGetStreamId")(client.context, stream,
                                                                                       &stream_id),
              0);
    uint32_t context_id = 0;
    EXPECT_EQ(Symbol<gpusonde_cupti_get_context_id_fn>(tool.cupti, "cuptiGetContextId")(client.context,
                                                                                        &context_id),
              0);
    client.Launch(1000, stream);
    client.cuCtxSynchronize();
    tool.Flush();
    ASSERT_EQ(tool.kernels.size(), 1U);
    EXPECT_EQ(tool.kernels[0].stream_id, stream_id);
    EXPECT_EQ(tool.kernels[0].context_id, context_id);
  });
}

}  // namespace
}  // namespace simgpu::tests
