// SPDX-License-Identifier: Apache-2.0
//
// A program with a known profile: each of its threads spends 50, 30 and 20 % of its CPU time on
//
//   prepare_batch → decode   → hash_block
//   train_step    → forward  → multiply
//   train_step    → backward → multiply
//
// One leaf is on two paths, so only a profiler with correct stacks gets the shares right. A thread always
// works on the path that is furthest below its share, for a slice of 0.5 to 1.5 ms by its own CPU clock: the
// shares are met to within a slice under any load, and random lengths keep slices from aligning with a
// sampling clock. At the end it prints the measured times.
#include <fmt/format.h>
#include <getopt.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

namespace hotpaths {

using Clock = std::chrono::steady_clock;

int64_t CpuNs(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}
int64_t ThreadCpuNs() { return CpuNs(CLOCK_THREAD_CPUTIME_ID); }

// A thread's data, and the work done. Both leaves count units of about 10 µs.
struct Work {
  uint64_t hash = 1;
  std::array<float, 1024> matrix{};
  int64_t units = 0;
};

// The compiler must keep `value` and may assume nothing about it.
template <class T>
void Keep(T& value) {
  asm volatile("" : "+m"(value) : : "memory");
}

// A call, so that the leaves above are not leaf functions to the compiler: GCC gives those no frame despite
// its flags, and without one a frame-pointer profiler misses their callers.
[[gnu::noinline]] void CountUnit(Work& work) {
  ++work.units;
  Keep(work);
}

[[gnu::noinline]] void hash_block(Work& work) {
  uint64_t hash = work.hash;
  for (int i = 0; i < 8'000; ++i) hash = (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9;
  work.hash = hash;
  CountUnit(work);
  Keep(work);
}

[[gnu::noinline]] void multiply(Work& work) {
  for (int round = 0; round < 24; ++round)
    for (float& cell : work.matrix) cell = cell * 0.999F + 0.25F;
  CountUnit(work);
  Keep(work);
}

// Reading the CPU clock is a system call of half a unit's length, and its wrapper in libc has no frame
// pointer, so its caller is lost: read it rarely.
constexpr int kUnitsPerLook = 10;

[[gnu::noinline]] void decode(Work& work, int64_t until_ns) {
  while (ThreadCpuNs() < until_ns)
    for (int i = 0; i < kUnitsPerLook; ++i) hash_block(work);
}
[[gnu::noinline]] void forward(Work& work, int64_t until_ns) {
  while (ThreadCpuNs() < until_ns)
    for (int i = 0; i < kUnitsPerLook; ++i) multiply(work);
}
[[gnu::noinline]] void backward(Work& work, int64_t until_ns) {
  while (ThreadCpuNs() < until_ns)
    for (int i = 0; i < kUnitsPerLook; ++i) multiply(work);
}

using Inner = void (*)(Work& work, int64_t until_ns);

[[gnu::noinline]] void prepare_batch(Inner inner, Work& work, int64_t until_ns) {
  inner(work, until_ns);
  Keep(work);
}
[[gnu::noinline]] void train_step(Inner inner, Work& work, int64_t until_ns) {
  inner(work, until_ns);
  Keep(work);
}

struct Path {
  std::string_view name;
  double share;
  void (*outer)(Inner inner, Work& work, int64_t until_ns);
  Inner inner;
};

constexpr std::array kPaths = {
    Path{"prepare_batch;decode;hash_block", 0.5, prepare_batch, decode},
    Path{"train_step;forward;multiply", 0.3, train_step, forward},
    Path{"train_step;backward;multiply", 0.2, train_step, backward},
};

struct Measured {
  std::array<int64_t, kPaths.size()> cpu_ns{};
  int64_t units = 0;
};

size_t FurthestBehind(const Measured& measured, int64_t total_ns) {
  const auto lag = [&](size_t i) {
    return kPaths[i].share * static_cast<double>(total_ns) - static_cast<double>(measured.cpu_ns[i]);
  };
  size_t furthest = 0;
  for (size_t i = 1; i < kPaths.size(); ++i)
    if (lag(i) > lag(furthest)) furthest = i;
  return furthest;
}

Measured RunThread(unsigned seed, Clock::time_point end) {
  std::minstd_rand random(seed);
  std::uniform_int_distribution<int64_t> slice_ns(500'000, 1'500'000);
  Work work;
  Measured measured;
  const int64_t start_ns = ThreadCpuNs();
  int64_t now_ns = start_ns;
  while (Clock::now() < end) {
    const size_t path = FurthestBehind(measured, now_ns - start_ns);
    kPaths[path].outer(kPaths[path].inner, work, now_ns + slice_ns(random));
    const int64_t before_ns = now_ns;
    now_ns = ThreadCpuNs();
    measured.cpu_ns[path] += now_ns - before_ns;
  }
  measured.units = work.units;
  return measured;
}

struct Flags {
  double seconds = 10;
  unsigned threads = 2;
};

// The calling thread is one of the threads.
Measured RunAll(const Flags& flags) {
  const auto end = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(flags.seconds));
  std::vector<Measured> measured(flags.threads);
  std::vector<std::jthread> workers;
  for (unsigned i = 1; i < flags.threads; ++i) {
    workers.emplace_back([&measured, end, i] { measured[i] = RunThread(i + 1, end); });
    ::pthread_setname_np(workers.back().native_handle(), fmt::format("worker-{}", i).c_str());
  }
  measured[0] = RunThread(1, end);
  workers.clear();  // joins
  Measured sum;
  for (const Measured& thread : measured) {
    for (size_t i = 0; i < kPaths.size(); ++i) sum.cpu_ns[i] += thread.cpu_ns[i];
    sum.units += thread.units;
  }
  return sum;
}

// {"threads":2,"seconds":10,"process_cpu_ns":…,"cpu_ns":…,"units":…,"paths":[{"path":"a;b;c","cpu_ns":…,
// "share":0.5},…]}: the CPU time of the process, start-up included, and of the work.
void PrintJson(const Measured& measured, const Flags& flags) {
  int64_t total_ns = 0;
  for (const int64_t cpu_ns : measured.cpu_ns) total_ns += cpu_ns;
  fmt::print(R"({{"threads":{},"seconds":{},"process_cpu_ns":{},"cpu_ns":{},"units":{},"paths":[)",
             flags.threads, flags.seconds, CpuNs(CLOCK_PROCESS_CPUTIME_ID), total_ns, measured.units);
  for (size_t i = 0; i < kPaths.size(); ++i)
    fmt::print(R"({}{{"path":"{}","cpu_ns":{},"share":{:.5f}}})", i == 0 ? "" : ",", kPaths[i].name,
               measured.cpu_ns[i], static_cast<double>(measured.cpu_ns[i]) / static_cast<double>(total_ns));
  fmt::print("]}}\n");
}

// Nothing if the arguments are invalid.
std::optional<Flags> ReadFlags(int argc, char** argv) {
  constexpr std::array kOptions = {option{"seconds", required_argument, nullptr, 's'},
                                   option{"threads", required_argument, nullptr, 't'}, option{}};
  Flags flags;
  int letter = 0;
  while ((letter = ::getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1) {
    if (letter == 's')
      flags.seconds = std::strtod(optarg, nullptr);
    else if (letter == 't')
      flags.threads = static_cast<unsigned>(std::strtoul(optarg, nullptr, 10));
    else
      return std::nullopt;
  }
  if (optind != argc || !(flags.seconds > 0) || flags.threads < 1 || flags.threads > 1024)
    return std::nullopt;
  return flags;
}

}  // namespace hotpaths

int main(int argc, char** argv) {
  const std::optional<hotpaths::Flags> flags = hotpaths::ReadFlags(argc, argv);
  if (!flags.has_value()) {
    fmt::print(stderr, "usage: hotpaths [--seconds S] [--threads N]\n");
    return 2;
  }
  hotpaths::PrintJson(hotpaths::RunAll(*flags), *flags);
}
