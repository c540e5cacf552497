// SPDX-License-Identifier: Apache-2.0
// libcudart.so.12 and .13 as programs use them.
#include "simgpu/tests/client.h"
#include "wire/nvidia/cudart.h"

namespace simgpu::tests {
namespace {

class Runtime : public testing::TestWithParam<const char*> {};

// Does what nvcc's host code does at start-up and for <<<…>>>.
TEST_P(Runtime, KernelsThatNvccRegistersAreLaunchedByTheirStubs) {
  const TestMachine machine;
  InChild({}, [] {
    void* cudart = Open(GetParam());
    static const struct {
      int32_t magic;
      int32_t version;
      const void* data;
      void* names;
    } kWrapper = {0x466243b1, 1, kPtx, nullptr};
    static const char kStub = 0;
    void** handle = Symbol<void**(const void*)>(cudart, "__cudaRegisterFatBinary")(&kWrapper);
    Symbol<void(void**, const char*, char*, const char*, int, void*, void*, void*, void*, int*)>(
        cudart, "__cudaRegisterFunction")(handle, &kStub, nullptr, "_Z5fixedv", -1, nullptr, nullptr, nullptr,
                                          nullptr, nullptr);
    auto* launch =
        Symbol<int32_t(const void*, gpusonde_cudart_dim3, gpusonde_cudart_dim3, void**, size_t, void*)>(
            cudart, "cudaLaunchKernel");
    for (int i = 0; i < 10; ++i) EXPECT_EQ(launch(&kStub, {10, 1, 1}, {64, 1, 1}, nullptr, 0, nullptr), 0);
    EXPECT_EQ(launch(nullptr, {10, 1, 1}, {64, 1, 1}, nullptr, 0, nullptr),
              GPUSONDE_CUDART_ERROR_INVALID_DEVICE_FUNCTION);
    EXPECT_EQ(Symbol<int32_t()>(cudart, "cudaGetLastError")(), GPUSONDE_CUDART_ERROR_INVALID_DEVICE_FUNCTION);
    EXPECT_EQ(Symbol<int32_t()>(cudart, "cudaGetLastError")(), 0) << "it was taken";
    EXPECT_EQ(Symbol<int32_t()>(cudart, "cudaDeviceSynchronize")(), 0);
    SimgpuAccount account{};
    Symbol<decltype(::simgpuAccount)>(Open("libcuda.so.1"), "simgpuAccount")(0, &account);
    EXPECT_EQ(account.kernels, 10);
    EXPECT_EQ(account.kernel_ns, 10 * 20'000);
  });
}

TEST_P(Runtime, StartsByItselfAndCopiesByDirection) {
  const TestMachine machine;
  InChild({}, [] {
    void* cudart = Open(GetParam());
    void* memory = nullptr;
    EXPECT_EQ(Symbol<int32_t(void**, size_t)>(cudart, "cudaMalloc")(&memory, 4096), 0);
    char host[4096];
    auto* copy = Symbol<int32_t(void*, const void*, size_t, int)>(cudart, "cudaMemcpy");
    EXPECT_EQ(copy(memory, host, sizeof host, GPUSONDE_CUDART_HOST_TO_DEVICE), 0);
    EXPECT_EQ(copy(host, memory, sizeof host, GPUSONDE_CUDART_DEFAULT), 0);
    EXPECT_EQ(copy(host, memory, sizeof host, 77), GPUSONDE_CU_ERROR_INVALID_VALUE);
    int version = 0;
    EXPECT_EQ(Symbol<int32_t(int*)>(cudart, "cudaRuntimeGetVersion")(&version), 0);
    EXPECT_EQ(version, std::string(GetParam()).ends_with("12") ? 12000 : 13000);
    EXPECT_EQ(Symbol<int32_t(void*)>(cudart, "cudaFree")(memory), 0);
  });
}

INSTANTIATE_TEST_SUITE_P(Versions, Runtime, testing::Values("libcudart.so.12", "libcudart.so.13"),
                         [](const auto& version) { return std::string(version.param).substr(13); });

}  // namespace
}  // namespace simgpu::tests
