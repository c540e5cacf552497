// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "simgpu/cuda/account.h"
#include "simgpu/cuda/driver_api.h"

namespace simgpu::tests {

inline constexpr int64_t kMs = 1'000'000;  // nanoseconds

// A machine for one test, removed at its end.
class TestMachine {
 public:
  TestMachine() : name_("simgpu-test-" + std::to_string(::getpid())) {
    ::setenv("SIMGPU_MACHINE", name_.c_str(), 1);
  }
  ~TestMachine() {
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored))
      if (entry.path().filename().string().starts_with(name_ + "."))
        std::filesystem::remove(entry.path(), ignored);
  }
  TestMachine(const TestMachine&) = delete;
  TestMachine& operator=(const TestMachine&) = delete;

 private:
  std::string name_;
};

using Settings = std::vector<std::pair<const char*, std::string>>;

// Starts body() in a new process, where the libraries are not loaded yet and will read these settings.
template <class Body>
pid_t StartChild(const Settings& settings, Body body) {
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  for (const auto& [name, value] : settings) ::setenv(name, value.c_str(), 1);
  body();
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

inline int ExitStatus(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Fails the test if anything in body() failed.
template <class Body>
void InChild(const Settings& settings, Body body) {
  EXPECT_EQ(ExitStatus(StartChild(settings, body)), 0) << "what failed is above";
}

inline void* Open(const char* name) {
  void* library = ::dlopen((std::string(SIMGPU_FOLDER) + "/" + name).c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    ADD_FAILURE() << ::dlerror();
    ::_exit(1);
  }
  return library;
}

template <class Function>
Function* Symbol(void* library, const char* name) {
  auto* function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) {
    ADD_FAILURE() << "there is no " << name;
    ::_exit(1);
  }
  return function;
}

inline constexpr const char* kPtx =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    "// simgpu: duration_ns=param0\n.visible .entry _Z5timedm(.param .u64 ns)\n{ ret; }\n"
    "// simgpu: duration_ns=20000\n.visible .entry _Z5fixedv()\n{ ret; }\n";

// libcuda with a context, two kernels and a stream.
struct Client {
  void* cuda = Open("libcuda.so.1");
#define SIMGPU_CLIENT(name) decltype(&::name) name = Symbol<decltype(::name)>(cuda, #name);
  SIMGPU_CLIENT(cuInit)
  SIMGPU_CLIENT(cuDevicePrimaryCtxRetain)
  SIMGPU_CLIENT(cuCtxSetCurrent)
  SIMGPU_CLIENT(cuCtxSynchronize)
  SIMGPU_CLIENT(cuModuleLoadData)
  SIMGPU_CLIENT(cuModuleGetFunction)
  SIMGPU_CLIENT(cuStreamCreate)
  SIMGPU_CLIENT(cuStreamSynchronize)
  SIMGPU_CLIENT(cuStreamQuery)
  SIMGPU_CLIENT(cuStreamWaitEvent)
  SIMGPU_CLIENT(cuEventCreate)
  SIMGPU_CLIENT(cuEventRecord)
  SIMGPU_CLIENT(cuEventSynchronize)
  SIMGPU_CLIENT(cuEventElapsedTime)
  SIMGPU_CLIENT(cuMemAlloc_v2)
  SIMGPU_CLIENT(cuMemFree_v2)
  SIMGPU_CLIENT(cuMemAllocHost_v2)
  SIMGPU_CLIENT(cuMemcpyHtoDAsync_v2)
  SIMGPU_CLIENT(cuMemcpyDtoHAsync_v2)
  SIMGPU_CLIENT(cuMemsetD8Async)
  SIMGPU_CLIENT(cuLaunchKernel)
  SIMGPU_CLIENT(cuStreamBeginCapture_v2)
  SIMGPU_CLIENT(cuStreamEndCapture)
  SIMGPU_CLIENT(cuGraphCreate)
  SIMGPU_CLIENT(cuGraphAddKernelNode_v2)
  SIMGPU_CLIENT(cuGraphInstantiateWithFlags)
  SIMGPU_CLIENT(cuGraphLaunch)
  SIMGPU_CLIENT(cuGraphExecDestroy)
  SIMGPU_CLIENT(cuGraphDestroy)
  SIMGPU_CLIENT(simgpuAccount)
#undef SIMGPU_CLIENT
  void* context = nullptr;
  void* module = nullptr;
  void* timed = nullptr;
  void* fixed = nullptr;
  void* stream = nullptr;

  // Separate from the rest, as tools have to be attached before the module is loaded.
  Client() {
    EXPECT_EQ(cuInit(0), 0);
    EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
    EXPECT_EQ(cuCtxSetCurrent(context), 0);
    EXPECT_EQ(cuStreamCreate(&stream, GPUSONDE_CU_STREAM_NON_BLOCKING), 0);
  }
  void Load() {
    EXPECT_EQ(cuModuleLoadData(&module, kPtx), 0);
    EXPECT_EQ(cuModuleGetFunction(&timed, module, "_Z5timedm"), 0);
    EXPECT_EQ(cuModuleGetFunction(&fixed, module, "_Z5fixedv"), 0);
  }
  int32_t Launch(uint64_t duration_ns, void* on, unsigned blocks = 1000) {
    void* params[] = {&duration_ns};
    return cuLaunchKernel(timed, blocks, 1, 1, 256, 1, 1, 0, on, params, nullptr);
  }
  SimgpuAccount Account() {
    SimgpuAccount account{};
    EXPECT_EQ(simgpuAccount(0, &account), 0);
    return account;
  }
};

inline int64_t MonotonicNs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace simgpu::tests
