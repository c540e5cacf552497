// SPDX-License-Identifier: Apache-2.0
// The client's words for NVTX, whose functions it has the inject library install as NVTX does:
//   ranges=N          N ranges, "step 0", "step 1" …
//   nested            a range of wide characters and one named second, within one named outer
//   nvtx=N            forks N times while two threads use NVTX; prints how many children can't do the same
//   brief=N           N threads, one after the other, with a range; prints by how many MiB the program grows
//   errno=N           N ranges of a thread that began when another one with a range had ended; prints errno
//   cancel=N          cancels N threads that use NVTX, and uses it after each
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "client.h"
#include "wire/nvidia/nvtx.h"

namespace {

// The functions that a tool installs into an NVTX instance.
gpusonde_nvtx_function g_push;
gpusonde_nvtx_function g_push_wide;
gpusonde_nvtx_function g_pop;
gpusonde_nvtx_function g_start;
gpusonde_nvtx_function g_end;
gpusonde_nvtx_function g_register;
gpusonde_nvtx_function* g_core[GPUSONDE_NVTX_CORE_RANGE_POP + 1];
gpusonde_nvtx_function* g_core2[GPUSONDE_NVTX_CORE2_DOMAIN_CREATE_A + 1];

int GetTable(uint32_t module, gpusonde_nvtx_function*** table, unsigned* entries) {
  g_core[GPUSONDE_NVTX_CORE_RANGE_PUSH_A] = &g_push;
  g_core[GPUSONDE_NVTX_CORE_RANGE_PUSH_W] = &g_push_wide;
  g_core[GPUSONDE_NVTX_CORE_RANGE_POP] = &g_pop;
  g_core[GPUSONDE_NVTX_CORE_RANGE_START_A] = &g_start;
  g_core[GPUSONDE_NVTX_CORE_RANGE_END] = &g_end;
  g_core2[GPUSONDE_NVTX_CORE2_DOMAIN_REGISTER_STRING_A] = &g_register;
  *table = module == GPUSONDE_NVTX_MODULE_CORE ? g_core : g_core2;
  *entries = module == GPUSONDE_NVTX_MODULE_CORE ? std::size(g_core) : std::size(g_core2);
  return module == GPUSONDE_NVTX_MODULE_CORE || module == GPUSONDE_NVTX_MODULE_CORE2 ? 1 : 0;
}

const void* GetExportTable(uint32_t id) {
  static const gpusonde_nvtx_callbacks callbacks = {sizeof callbacks, GetTable};
  return id == GPUSONDE_NVTX_TABLE_CALLBACKS ? &callbacks : nullptr;
}

void AttachNvtx() {
  Find<int(gpusonde_nvtx_get_export_table*)>(std::getenv("CUDA_INJECTION64_PATH"),
                                             "InitializeInjectionNvtx2")(GetExportTable);
}

void Ranges(long count) {
  AttachNvtx();
  for (long i = 0; i < count; ++i) {
    reinterpret_cast<int (*)(const char*)>(g_push)(("step " + std::to_string(i)).c_str());
    reinterpret_cast<int (*)()>(g_pop)();
  }
}

void NestedRanges() {
  AttachNvtx();
  const auto push = [](const char* text) { reinterpret_cast<int (*)(const char*)>(g_push)(text); };
  const auto pop = [] { reinterpret_cast<int (*)()>(g_pop)(); };
  push("outer");
  if (g_push_wide != nullptr) reinterpret_cast<int (*)(const wchar_t*)>(g_push_wide)(L"wide");
  pop();
  push("second");
  pop();
  pop();
}

void UseNvtx() {
  const uint64_t range = reinterpret_cast<uint64_t (*)(const char*)>(g_start)("range");
  reinterpret_cast<void (*)(uint64_t)>(g_end)(range);
  reinterpret_cast<const void* (*)(const void*, const char*)>(g_register)(nullptr, "string");
}

// In so many threads, one after the other, a range. Prints by how many MiB the program grows.
void RangesOfThreads(long count) {
  AttachNvtx();
  const auto resident = [] {
    std::ifstream file("/proc/self/statm");
    long pages = 0;
    file >> pages >> pages;
    return pages;
  };
  const long before = resident();
  for (long i = 0; i < count; ++i)
    std::thread([] {
      reinterpret_cast<int (*)(const char*)>(g_push)("range");
      reinterpret_cast<int (*)()>(g_pop)();
    }).join();
  std::printf("%ld\n", (resident() - before) / 256);
  std::fflush(stdout);
}

void PrintErrno(long count) {
  AttachNvtx();
  const auto use = [](long ranges) {
    for (long i = 0; i < ranges; ++i) {
      reinterpret_cast<int (*)(const char*)>(g_push)("range");
      reinterpret_cast<int (*)()>(g_pop)();
    }
  };
  std::thread(use, 1).join();
  std::thread([&] {
    errno = 0;
    use(count);
    std::printf("%d\n", errno);
  }).join();
  std::fflush(stdout);
}

// Cancels threads one after the other, each of which is using NVTX.
void Cancel(long count) {
  AttachNvtx();
  alarm(30);
  for (long i = 0; i < count; ++i) {
    pthread_t thread{};
    const auto use = [](void*) -> void* {
      for (;;) {
        UseNvtx();
        pthread_testcancel();
      }
    };
    pthread_create(&thread, nullptr, use, nullptr);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    pthread_cancel(thread);
    pthread_join(thread, nullptr);
    for (int ranges = 0; ranges < 1000; ++ranges) UseNvtx();
  }
  alarm(0);
}

}  // namespace

bool DoNvtx(std::string_view word, long value) {
  if (word == "ranges") {
    Ranges(value);
  } else if (word == "nested") {
    NestedRanges();
  } else if (word == "nvtx") {
    AttachNvtx();
    ForkWithin(value, UseNvtx);
  } else if (word == "brief") {
    RangesOfThreads(value);
  } else if (word == "errno") {
    PrintErrno(value);
  } else if (word == "cancel") {
    Cancel(value);
  } else {
    return false;
  }
  return true;
}
