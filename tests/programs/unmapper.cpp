// SPDX-License-Identifier: Apache-2.0
// unmapper SECONDS LIBRARY: unmaps memory that a profiler is about to read, for so long, and until it has
// used as much CPU time. Three threads run code, or on stacks, that are unmapped a moment later and often
// replaced by the next mapping. By thread name:
//   library  loads libfive_fifth.so, calls it, closes it
//   jit      generates code, describes it in /tmp/perf-PID.map (rewritten each time), calls it, unmaps it
//   stack    starts threads on stacks that it unmaps
// Prints how often each did.
#include <dlfcn.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "burn.h"

namespace {

constexpr size_t kPage = 4096;
constexpr size_t kStackBytes = 64 << 10;
constexpr int64_t kWorkNs = 1'000'000;

//  push %rbp; mov %rsp, %rbp; 1: dec %edi; jnz 1b; pop %rbp; ret
constexpr std::array<uint8_t, 10> kSpin = {0x55, 0x48, 0x89, 0xE5, 0xFF, 0xCF, 0x75, 0xFC, 0x5D, 0xC3};

std::chrono::steady_clock::time_point end_of_work;
std::atomic<bool> failed = false;

std::chrono::nanoseconds cpu_time_of_work{};

std::chrono::nanoseconds UsedCpuTime() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool GoesOn() {
  return !failed && (std::chrono::steady_clock::now() < end_of_work || UsedCpuTime() < cpu_time_of_work);
}

void Fail(const char* what) {
  std::perror(what);
  failed = true;
}

long Libraries(const char* path) {
  ::prctl(PR_SET_NAME, "library");
  long turns = 0;
  for (; GoesOn(); ++turns) {
    void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void* function = library == nullptr ? nullptr : ::dlsym(library, "_ZN4five12FifthLibraryEl");
    if (function == nullptr) {
      Fail(::dlerror());
      return turns;
    }
    std::bit_cast<long (*)(long)>(function)(100);
    ::dlclose(library);
  }
  return turns;
}

long Code() {
  ::prctl(PR_SET_NAME, "jit");
  const std::string path = fmt::format("/tmp/perf-{}.map", ::getpid());
  long turns = 0;
  for (; GoesOn(); ++turns) {
    void* code = ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) {
      Fail("map memory");
      return turns;
    }
    std::memcpy(code, kSpin.data(), kSpin.size());
    std::FILE* map = std::fopen(path.c_str(), "w");
    if (::mprotect(code, kPage, PROT_READ | PROT_EXEC) != 0 || map == nullptr) {
      Fail("make code");
      return turns;
    }
    fmt::print(map, "{:x} {:x} jit::spin\n", std::bit_cast<uintptr_t>(code), kSpin.size());
    std::fclose(map);
    std::bit_cast<void (*)(uint32_t)>(code)(2'000'000);
    ::munmap(code, kPage);
  }
  ::unlink(path.c_str());
  return turns;
}

long Stacks() {
  ::prctl(PR_SET_NAME, "stack");
  long turns = 0;
  for (; GoesOn(); ++turns) {
    void* stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setstack(&attributes, stack, kStackBytes);
    pthread_t thread{};
    const auto work = [](void*) -> void* {
      Burn(kWorkNs);
      return nullptr;
    };
    if (stack == MAP_FAILED || ::pthread_create(&thread, &attributes, work, nullptr) != 0) {
      Fail("start a thread");
      return turns;
    }
    ::pthread_join(thread, nullptr);
    ::pthread_attr_destroy(&attributes);
    ::munmap(stack, kStackBytes);
  }
  return turns;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::chrono::milliseconds time(std::lround(1000 * std::atof(arguments[1])));
  end_of_work = std::chrono::steady_clock::now() + time;
  cpu_time_of_work = time;
  long libraries = 0, code = 0, stacks = 0;
  std::thread of_libraries([&] { libraries = Libraries(arguments[2]); });
  std::thread of_code([&] { code = Code(); });
  std::thread of_stacks([&] { stacks = Stacks(); });
  of_libraries.join();
  of_code.join();
  of_stacks.join();
  fmt::print("{} libraries, {} pieces of code, {} stacks\n", libraries, code, stacks);
  return failed ? 1 : 0;
}
