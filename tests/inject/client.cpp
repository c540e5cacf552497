// SPDX-License-Identifier: Apache-2.0
// A program with GPU work and the inject library in it, for tests. It does what its arguments say, in their
// order, and prints what came of them:
//   start             the driver initialises: the library is loaded and told
//   launch=N          N kernels by turns "first" (1000 ns) and "second" (3000 ns)
//   threads=T,N       T threads with N launches each, of "threaded" (500 ns)
//   rate=R,S          R launches a second of "steady" (1000 ns) for S seconds
//   copy=N set=N sync=N graph=NODES,LAUNCHES ranges=N
//   wrap untimed drop=N foreign=NAME buffers fail=CODE
//   wait=MS           lets time pass
//   fork              forks a child that launches and exits
//   state             prints subscribers, kinds, callbacks
//   _exit abort exit=CODE
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fake_cupti.h"
#include "wire/nvidia/cupti.h"
#include "wire/nvidia/nvtx.h"

namespace {

// Of an NVTX instance, what a tool is given and the functions that it puts there.
gpusonde_nvtx_function g_push;
gpusonde_nvtx_function g_pop;
gpusonde_nvtx_function* g_core[GPUSONDE_NVTX_CORE_RANGE_POP + 1];

int GetTable(uint32_t module, gpusonde_nvtx_function*** table, unsigned* entries) {
  if (module != GPUSONDE_NVTX_MODULE_CORE) return 0;
  g_core[GPUSONDE_NVTX_CORE_RANGE_PUSH_A] = &g_push;
  g_core[GPUSONDE_NVTX_CORE_RANGE_POP] = &g_pop;
  *table = g_core;
  *entries = GPUSONDE_NVTX_CORE_RANGE_POP + 1;
  return 1;
}

const void* GetExportTable(uint32_t id) {
  static const gpusonde_nvtx_callbacks callbacks = {sizeof callbacks, GetTable};
  return id == GPUSONDE_NVTX_TABLE_CALLBACKS ? &callbacks : nullptr;
}

void Start() {
  void* library = dlopen(std::getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  if (library == nullptr) {
    std::printf("dlopen: %s\n", dlerror());
    return;
  }
  reinterpret_cast<int (*)()>(dlsym(library, "InitializeInjection"))();
  using Attach = int(gpusonde_nvtx_get_export_table*);
  reinterpret_cast<Attach*>(dlsym(library, "InitializeInjectionNvtx2"))(GetExportTable);
}

// Not inlined and no tail call, so that the stack shows it.
__attribute__((noinline)) void LaunchSome(long count) {
  for (long i = 0; i < count; ++i) {
    if (i % 2 == 0)
      FakeLaunch("first", 0, 1000);
    else
      FakeLaunch("second", 0, 3000);
  }
  asm volatile("");
}

void Threads(long threads, long count) {
  std::vector<std::thread> running;
  for (long i = 0; i < threads; ++i)
    running.emplace_back([count] {
      for (long n = 0; n < count; ++n) FakeLaunch("threaded", 0, 500);
    });
  for (std::thread& thread : running) thread.join();
}

void Steady(long per_second, long seconds) {
  const auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < per_second * seconds; ++i) {
    FakeLaunch("steady", 0, 1000);
    if (i % 100 == 99)
      std::this_thread::sleep_until(start + std::chrono::nanoseconds(1'000'000'000L / per_second * (i + 1)));
  }
}

void Ranges(long count) {
  for (long i = 0; i < count; ++i) {
    reinterpret_cast<int (*)(const char*)>(g_push)(("step " + std::to_string(i)).c_str());
    reinterpret_cast<int (*)()>(g_pop)();
  }
}

void Fork() {
  const pid_t child = fork();
  if (child == 0) {
    LaunchSome(10);
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  std::printf("child %d\n", WEXITSTATUS(status));
}

void Do(std::string_view word, long first, long second, const std::string& text) {
  if (word == "start") Start();
  if (word == "launch") LaunchSome(first);
  if (word == "threads") Threads(first, second);
  if (word == "rate") Steady(first, second);
  if (word == "copy")
    for (long i = 0; i < first; ++i) FakeCopy(GPUSONDE_CUPTI_MEMCPY_HTOD, 4096, 2000);
  if (word == "set")
    for (long i = 0; i < first; ++i) FakeSet(256, 700);
  if (word == "sync")
    for (long i = 0; i < first; ++i) FakeSync(100);
  if (word == "graph") FakeGraph("node", static_cast<uint32_t>(first), static_cast<uint32_t>(second), 400);
  if (word == "ranges") Ranges(first);
  if (word == "wrap") FakeSetCorrelation(0xfffffffe);
  if (word == "untimed") FakeDropTimes();
  if (word == "drop") FakeDropRecords(static_cast<uint64_t>(first));
  if (word == "foreign") FakeForeignSubscriber(text.c_str());
  if (word == "buffers") FakeForeignBuffers();
  if (word == "fail") FakeFail(static_cast<int32_t>(first));
  if (word == "wait") std::this_thread::sleep_for(std::chrono::milliseconds(first));
  if (word == "fork") Fork();
  if (word == "state") {
    std::printf("state %u %u %u\n", FakeSubscribers(), FakeEnabledKinds(), FakeEnabledCallbacks());
    std::fflush(stdout);
  }
  if (word == "exit") std::exit(static_cast<int>(first));
  if (word == "_exit") _exit(0);
  if (word == "abort") std::abort();
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    const size_t equals = argument.find('=');
    const std::string value(equals == std::string_view::npos ? "" : argument.substr(equals + 1));
    char* rest = nullptr;
    const long first = std::strtol(value.c_str(), &rest, 10);
    const long second = *rest == ',' ? std::strtol(rest + 1, nullptr, 10) : 0;
    Do(argument.substr(0, equals), first, second, value);
  }
}
