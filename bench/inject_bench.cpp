// SPDX-License-Identifier: Apache-2.0
// The inject library's cost per CUDA launch, with a CUPTI that costs nothing: a launch through the runtime
// makes four callbacks, at entry and exit of the runtime's call and of the driver's call inside it.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "inject_cupti.h"
#include "sources/cupti/gpu_events.h"

namespace gpusonde {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint32_t kLaunchKernel = 211;  // cudaLaunchKernel_v7000
constexpr uint32_t kCuLaunchKernel = 307;
// A typical stack of a C++ training program above the launch.
constexpr int kDepth = 40;

// The library's subscription.
gpusonde_cupti_callback* g_callback = nullptr;
void* g_user = nullptr;

// Launches alternate among this many kernels.
constexpr size_t kKernels = 64;
const char* SymbolName(uint32_t correlation) {
  static const auto names = [] {
    std::array<std::string, kKernels> made;
    for (size_t i = 0; i < made.size(); ++i) made[i] = "_Z24vectorized_elementwise_" + std::to_string(i);
    return made;
  }();
  return names[correlation % kKernels].c_str();
}

void CallBack(uint32_t domain, uint32_t id, uint32_t site, uint32_t correlation, uint64_t& shared) {
  gpusonde_cupti_callback_data data{};
  data.symbol_name = SymbolName(correlation);
  data.site = site;
  data.correlation_data = &shared;
  data.correlation_id = correlation;
  g_callback(g_user, domain, id, &data);
}

void Launch(uint32_t correlation) {
  uint64_t runtime = 0;
  uint64_t driver = 0;
  CallBack(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kLaunchKernel, GPUSONDE_CUPTI_API_ENTER, correlation, runtime);
  CallBack(GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel, GPUSONDE_CUPTI_API_ENTER, correlation, driver);
  CallBack(GPUSONDE_CUPTI_DOMAIN_DRIVER, kCuLaunchKernel, GPUSONDE_CUPTI_API_EXIT, correlation, driver);
  CallBack(GPUSONDE_CUPTI_DOMAIN_RUNTIME, kLaunchKernel, GPUSONDE_CUPTI_API_EXIT, correlation, runtime);
}

__attribute__((noinline)) double LaunchFrom(int depth) {
  if (depth > 0) {
    const double nanoseconds = LaunchFrom(depth - 1);
    benchmark::ClobberMemory();  // no tail call
    return nanoseconds;
  }
  const auto start = Clock::now();
  Launch(1);
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count();
}

// The library in this program, awake because of a consumer: on its socket, like `record` without root, or on
// its probes, like `up`.
class Awake {
 public:
  static Awake& Get() {
    static Awake awake;
    return awake;
  }

  // Switches from the socket to the probes. Returns the reason if that is not possible.
  std::optional<std::string> Attach() {
    if (attached_) return std::nullopt;
    Result<ebpf::StackTables> tables = ebpf::StackTables::Create();
    if (!tables.has_value()) return tables.error().message;
    Result<cupti::GpuEvents> events =
        cupti::GpuEvents::Create({.library_path = GPUSONDE_INJECT_LIBRARY}, &*tables);
    if (!events.has_value()) return events.error().message;
    const Result<bool> ours = events->Consider(::getpid(), GPUSONDE_INJECT_LIBRARY);
    if (!ours.has_value()) return ours.error().message;
    const std::lock_guard lock(mutex_);
    with_probes_.emplace(std::move(*events));
    with_socket_.reset();
    attached_ = true;
    return std::nullopt;
  }

  // Whether callbacks arrive. With consumers on probes only, the governor may suspend the library.
  static bool IsAwake() { return BenchCallback() != nullptr; }
  static void Wait() {
    while (!IsAwake()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  Awake() {
    Result<cupti::GpuEvents> events =
        cupti::GpuEvents::Create({.library_path = GPUSONDE_INJECT_LIBRARY}, nullptr);
    if (!events.has_value()) Give("attach to the library", events.error().message);
    Result<cupti::GpuEvents::Inheritance> inheritance = events->MakeSocket();
    if (!inheritance.has_value()) Give("make a socket", inheritance.error().message);
    static std::string variable = inheritance->environment;
    ::putenv(variable.data());
    inheritance->fd.release();
    with_socket_.emplace(std::move(*events));
    void* library = ::dlopen(GPUSONDE_INJECT_LIBRARY, RTLD_NOW);
    if (library == nullptr) Give("load the library", ::dlerror());
    reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"))();
    g_callback = BenchCallback();
    g_user = BenchUser();
    if (g_callback == nullptr) Give("wake the library", "it did not subscribe");
    reader_ = std::thread([this] {
      while (!stop_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        const std::lock_guard lock(mutex_);
        (void)(attached_ ? with_probes_ : with_socket_)->Drain([](sources::Event&&) {});
      }
    });
  }
  ~Awake() {
    stop_ = true;
    reader_.join();
  }
  [[noreturn]] static void Give(const char* what, const std::string& why) {
    std::fprintf(stderr, "bench_inject: can't %s: %s\n", what, why.c_str());
    std::exit(1);
  }

  std::mutex mutex_;
  std::optional<cupti::GpuEvents> with_socket_;
  std::optional<cupti::GpuEvents> with_probes_;
  bool attached_ = false;
  std::atomic<bool> stop_ = false;
  std::thread reader_;
};

double SecondsOf(int launches) {
  const auto start = Clock::now();
  for (int i = 0; i < launches; ++i) Launch(static_cast<uint32_t>(i) + 1);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// At this rate one launch in tens of thousands is sampled. The cost of calling an empty function is
// subtracted.
void LaunchUnsampled(benchmark::State& state) {
  constexpr int kLaunches = 5'000'000;
  Awake::Get();
  gpusonde_cupti_callback* library = g_callback;
  SecondsOf(4 * kLaunches);  // until the sampler has adapted to the rate
  for (auto _ : state) {
    const double with = SecondsOf(kLaunches);
    g_callback = [](void*, uint32_t, uint32_t, const void* data) { benchmark::DoNotOptimize(data); };
    const double without = SecondsOf(kLaunches);
    g_callback = library;
    state.SetIterationTime((with - without) / kLaunches);
  }
  state.SetLabel("goal: <= 30 ns");
}
BENCHMARK(LaunchUnsampled)->UseManualTime()->Iterations(10);

// The first calls of a thread are all sampled: measures their p99 over many threads.
void SampledP99(benchmark::State& state, bool probes) {
  constexpr int kThreads = 40;
  constexpr int kCalls = 100;
  if (probes)
    if (const std::optional<std::string> why = Awake::Get().Attach())
      return state.SkipWithError(why->c_str());
  for (auto _ : state) {
    std::vector<double> nanoseconds;
    for (int thread = 0; thread < kThreads; ++thread)
      std::thread([&] {
        Awake::Wait();
        for (int i = 0; i < kCalls; ++i) nanoseconds.push_back(LaunchFrom(kDepth));
      }).join();
    std::ranges::sort(nanoseconds);
    state.SetIterationTime(nanoseconds[nanoseconds.size() * 99 / 100] * 1e-9);
  }
  state.SetLabel("goal: <= 15000 ns");
}
void LaunchSampledSocketP99(benchmark::State& state) { SampledP99(state, false); }
BENCHMARK(LaunchSampledSocketP99)->UseManualTime()->Iterations(10);

void LaunchSampledStackP99(benchmark::State& state) { SampledP99(state, true); }
BENCHMARK(LaunchSampledStackP99)->UseManualTime()->Iterations(10);

// 10,000 launches a second, with stacks, while the library is awake: 100 every 10 ms.
void LaunchAt10000ASecond(benchmark::State& state) {
  if (const std::optional<std::string> why = Awake::Get().Attach()) return state.SkipWithError(why->c_str());
  constexpr int kBatches = 300;
  for (auto _ : state) {
    double nanoseconds = 0;
    std::thread([&] {
      auto next = Clock::now();
      // In the first second the sampler adapts to the rate.
      for (int batch = -100; batch < kBatches;) {
        Awake::Wait();
        const auto start = Clock::now();
        for (uint32_t i = 1; i <= 100; ++i) Launch(i);
        const auto end = Clock::now();
        next = std::max(next + std::chrono::milliseconds(10), end);
        std::this_thread::sleep_until(next);
        if (!Awake::IsAwake()) continue;
        if (batch >= 0) nanoseconds += std::chrono::duration<double, std::nano>(end - start).count();
        ++batch;
      }
    }).join();
    state.SetIterationTime(nanoseconds / (kBatches * 100) * 1e-9);
  }
  state.SetLabel("goal: <= 300 ns");
}
BENCHMARK(LaunchAt10000ASecond)->UseManualTime()->Iterations(1);

}  // namespace
}  // namespace gpusonde
