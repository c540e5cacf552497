// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 as programs use it.
#include <array>
#include <cstring>

#include "simgpu/tests/client.h"

namespace simgpu::tests {
namespace {

TEST(Driver, NamesAndUuidsContainSimulated) {
  const TestMachine machine;
  InChild({{"SIMGPU_DEVICES", "3"}}, [] {
    const Client client;
    int count = 0;
    auto* get_count = Symbol<decltype(::cuDeviceGetCount)>(client.cuda, "cuDeviceGetCount");
    EXPECT_EQ(get_count(&count), 0);
    EXPECT_EQ(count, 3);
    auto* get_name = Symbol<int32_t(char*, int, int)>(client.cuda, "cuDeviceGetName");
    auto* get_uuid = Symbol<int32_t(gpusonde_cu_uuid*, int)>(client.cuda, "cuDeviceGetUuid_v2");
    std::array<gpusonde_cu_uuid, 3> uuids{};
    for (int i = 0; i < 3; ++i) {
      std::array<char, 96> name{};
      EXPECT_EQ(get_name(name.data(), name.size(), i), 0);
      EXPECT_NE(std::strstr(name.data(), "Simulated"), nullptr) << name.data();
      EXPECT_EQ(get_uuid(&uuids[static_cast<size_t>(i)], i), 0);
      EXPECT_EQ(std::memcmp(uuids[static_cast<size_t>(i)].bytes, "simulated", 9), 0);
    }
    EXPECT_NE(std::memcmp(&uuids[0], &uuids[1], sizeof uuids[0]), 0);
    EXPECT_EQ(get_name(nullptr, 0, 3), GPUSONDE_CU_ERROR_INVALID_DEVICE);
  });
}

// Work takes long here, so that a busy host delays nothing by a large part of it.
TEST(Driver, LaunchesReturnBeforeTheirKernelsEnd) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    const int64_t begin_ns = MonotonicNs();
    for (int i = 0; i < 10; ++i) EXPECT_EQ(client.Launch(50 * kMs, client.stream), 0);
    EXPECT_LT(MonotonicNs() - begin_ns, 250 * kMs);
    EXPECT_EQ(client.cuStreamQuery(client.stream), GPUSONDE_CU_ERROR_NOT_READY);
    EXPECT_EQ(client.cuStreamSynchronize(client.stream), 0);
    EXPECT_GE(MonotonicNs() - begin_ns, 500 * kMs);
    EXPECT_EQ(client.cuStreamQuery(client.stream), 0);
    EXPECT_EQ(client.Account().kernels, 10);
    EXPECT_EQ(client.Account().kernel_ns, 500 * kMs);
  });
}

TEST(Driver, EventsMeasureWhatLiesBetweenThem) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    void* from = nullptr;
    void* to = nullptr;
    client.cuEventCreate(&from, 0);
    client.cuEventCreate(&to, 0);
    client.Launch(kMs, client.stream);
    client.cuEventRecord(from, client.stream);
    client.Launch(7 * kMs, client.stream);
    client.cuEventRecord(to, client.stream);
    float elapsed_ms = 0;
    EXPECT_EQ(client.cuEventElapsedTime(&elapsed_ms, from, to), GPUSONDE_CU_ERROR_NOT_READY);
    EXPECT_EQ(client.cuEventSynchronize(to), 0);
    EXPECT_EQ(client.cuEventElapsedTime(&elapsed_ms, from, to), 0);
    EXPECT_NEAR(elapsed_ms, 7, 0.001);
  });
}

TEST(Driver, AStreamWaitsForTheEventOfAnother) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    void* other = nullptr;
    void* event = nullptr;
    client.cuStreamCreate(&other, GPUSONDE_CU_STREAM_NON_BLOCKING);
    client.cuEventCreate(&event, 0);
    const int64_t begin_ns = MonotonicNs();
    client.Launch(200 * kMs, client.stream, 1);
    client.cuEventRecord(event, client.stream);
    client.Launch(200 * kMs, other, 1);  // beside it
    client.cuStreamWaitEvent(other, event, 0);
    client.Launch(100 * kMs, other, 1);  // after both
    client.cuStreamSynchronize(other);
    EXPECT_GE(MonotonicNs() - begin_ns, 300 * kMs);
    EXPECT_LT(MonotonicNs() - begin_ns, 475 * kMs);
  });
}

TEST(Driver, TheLegacyStreamWaitsForBlockingOnesAndTheyForIt) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    void* blocking = nullptr;
    client.cuStreamCreate(&blocking, 0);
    const int64_t begin_ns = MonotonicNs();
    client.Launch(150 * kMs, blocking, 1);
    client.Launch(150 * kMs, nullptr, 1);
    client.Launch(150 * kMs, blocking, 1);
    client.Launch(150 * kMs, client.stream, 1);  // non-blocking: beside the others
    client.cuCtxSynchronize();
    EXPECT_GE(MonotonicNs() - begin_ns, 450 * kMs);
    EXPECT_LT(MonotonicNs() - begin_ns, 590 * kMs);
  });
}

TEST(Driver, CopiesShareTheLinkAndPageableOnesWait) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    constexpr size_t kBytes = 2600 * kMs;  // 50 ms at the H100's 52 bytes/ns
    uint64_t memory = 0;
    void* pinned = nullptr;
    void* other = nullptr;
    ASSERT_EQ(client.cuMemAlloc_v2(&memory, kBytes), 0);
    ASSERT_EQ(client.cuMemAllocHost_v2(&pinned, kBytes), 0);
    client.cuStreamCreate(&other, GPUSONDE_CU_STREAM_NON_BLOCKING);
    const int64_t begin_ns = MonotonicNs();
    client.cuMemcpyHtoDAsync_v2(memory, pinned, kBytes, client.stream);
    client.cuMemcpyHtoDAsync_v2(memory, pinned, kBytes, other);
    client.cuMemcpyDtoHAsync_v2(pinned, memory, kBytes, other);
    EXPECT_LT(MonotonicNs() - begin_ns, 45 * kMs) << "pinned memory doesn't wait";
    client.cuCtxSynchronize();
    EXPECT_GE(MonotonicNs() - begin_ns, 150 * kMs);
    EXPECT_LT(MonotonicNs() - begin_ns, 250 * kMs);
    const std::array<char, 1> pageable{};
    const int64_t again_ns = MonotonicNs();
    client.cuMemcpyHtoDAsync_v2(memory, pageable.data(), kBytes / 4, client.stream);  // nothing is read
    EXPECT_GE(MonotonicNs() - again_ns, 25 * kMs);
    EXPECT_EQ(client.Account().copies, 4);
    EXPECT_EQ(client.Account().copy_bytes, static_cast<int64_t>(3 * kBytes + kBytes / 4));
  });
}

TEST(Driver, MemoryIsAccountedForAndRunsOut) {
  const TestMachine machine;
  InChild({{"SIMGPU_MODEL", "t4"}}, [] {
    Client client;
    auto* info = Symbol<decltype(::cuMemGetInfo_v2)>(client.cuda, "cuMemGetInfo_v2");
    size_t before = 0;
    size_t after = 0;
    size_t total = 0;
    uint64_t memory = 0;
    info(&before, &total);
    ASSERT_EQ(client.cuMemAlloc_v2(&memory, size_t{1} << 30), 0);
    info(&after, &total);
    EXPECT_EQ(before - after, size_t{1} << 30);
    EXPECT_EQ(total, size_t{15'360} << 20);
    uint64_t too_much = 0;
    EXPECT_EQ(client.cuMemAlloc_v2(&too_much, after + 1), GPUSONDE_CU_ERROR_OUT_OF_MEMORY);
    EXPECT_EQ(client.cuMemFree_v2(memory), 0);
    EXPECT_EQ(client.cuMemFree_v2(memory), GPUSONDE_CU_ERROR_INVALID_VALUE) << "freed twice";
    info(&after, &total);
    EXPECT_EQ(after, before);
  });
}

TEST(Driver, InvalidUseIsAnErrorAndNotACrash) {
  const TestMachine machine;
  InChild({}, [] {
    void* cuda = Open("libcuda.so.1");
    auto* synchronize = Symbol<decltype(::cuCtxSynchronize)>(cuda, "cuCtxSynchronize");
    EXPECT_EQ(synchronize(), GPUSONDE_CU_ERROR_NOT_INITIALIZED);
    Client client;
    client.Load();
    EXPECT_EQ(client.cuInit(1), GPUSONDE_CU_ERROR_INVALID_VALUE);
    EXPECT_EQ(client.cuLaunchKernel(client.stream, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              GPUSONDE_CU_ERROR_INVALID_HANDLE)
        << "a stream is no function";
    EXPECT_EQ(client.Launch(1000, client.context), GPUSONDE_CU_ERROR_INVALID_HANDLE);
    EXPECT_EQ(client.Launch(1000, client.stream, 0), GPUSONDE_CU_ERROR_INVALID_VALUE);
    void* function = nullptr;
    EXPECT_EQ(client.cuModuleGetFunction(&function, client.module, "nobody"), GPUSONDE_CU_ERROR_NOT_FOUND);
    EXPECT_EQ(client.cuCtxSetCurrent(nullptr), 0);
    EXPECT_EQ(client.Launch(1000, client.stream), GPUSONDE_CU_ERROR_INVALID_CONTEXT);
  });
}

TEST(Driver, AFullQueueMakesTheLaunchWait) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    const int64_t begin_ns = MonotonicNs();
    for (int i = 0; i < 6000; ++i) ASSERT_EQ(client.Launch(20'000, client.stream), 0);
    // A queue of 4,096 segments holds that many kernels of one stream: the last launches had to wait for
    // 1,900 of them.
    EXPECT_GE(MonotonicNs() - begin_ns, 1'800 * 20'000);
    client.cuStreamSynchronize(client.stream);
    EXPECT_EQ(client.Account().kernel_ns, 6000 * 20'000);
  });
}

TEST(Driver, GetProcAddressFindsTheNewestVersion) {
  const TestMachine machine;
  InChild({}, [] {
    const Client client;
    auto* get = Symbol<int32_t(const char*, void**, int, uint64_t, int*)>(client.cuda, "cuGetProcAddress_v2");
    void* function = nullptr;
    int status = -1;
    EXPECT_EQ(get("cuMemAlloc", &function, 12000, 0, &status), 0);
    EXPECT_EQ(status, 0);
    EXPECT_EQ(function, ::dlsym(client.cuda, "cuMemAlloc_v2"));
    EXPECT_EQ(get("cuCtxCreate", &function, 12000, 0, &status), 0);
    EXPECT_EQ(function, ::dlsym(client.cuda, "cuCtxCreate_v2"));
    EXPECT_EQ(get("cuCtxCreate", &function, 13000, 0, &status), 0);
    EXPECT_EQ(function, ::dlsym(client.cuda, "cuCtxCreate_v4"));
    EXPECT_EQ(get("cuNoSuchThing", &function, 13000, 0, &status), 0);
    EXPECT_EQ(status, 1);
  });
}

TEST(Driver, AForkedChildCannotUseIt) {
  const TestMachine machine;
  InChild({}, [] {
    Client client;
    client.Load();
    client.Launch(1000, client.stream);
    const pid_t pid = ::fork();
    if (pid == 0) ::_exit(client.Launch(1000, client.stream));
    EXPECT_EQ(ExitStatus(pid), GPUSONDE_CU_ERROR_NOT_INITIALIZED);
    EXPECT_EQ(client.Launch(1000, client.stream), 0);
  });
}

TEST(Driver, LoadsTheInjectionLibraryOnceItWorksItself) {
  const TestMachine machine;
  // Any library with InitializeInjection works; a missing one must not matter.
  InChild({{"CUDA_INJECTION64_PATH", "/nonexistent/tool.so"}}, [] {
    Client client;
    client.Load();
    EXPECT_EQ(client.Launch(1000, client.stream), 0);
  });
}

}  // namespace
}  // namespace simgpu::tests
