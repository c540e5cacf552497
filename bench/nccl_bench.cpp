// SPDX-License-Identifier: Apache-2.0
// The cost of a collective of two channels in NCCL's profiler plugin, on NCCL's threads: `start` and `stop`
// of the call and of its kernel on each channel, as NCCL calls them.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "wire/nvidia/nccl_profiler.h"

namespace gpusonde {
namespace {

constexpr uint8_t kChannels = 2;
// Four times a second the library frees slots, of which it has 4,096: more at a time would measure drops.
constexpr int kBurst = 512;

void Log(int, unsigned long, const char*, int, const char*, ...) {}

class Plugin {
 public:
  static Plugin& Get() {
    static Plugin plugin;
    return plugin;
  }
  void Collective() {
    gpusonde_nccl_event_v5 event{};
    event.type = GPUSONDE_NCCL_COLL;
    event.coll = {.sequence = sequence_++,
                  .operation = "AllReduce",
                  .send_buffer = nullptr,
                  .receive_buffer = nullptr,
                  .count = 262'144,
                  .root = 0,
                  .datatype = "ncclFloat32",
                  .channels = kChannels,
                  .warps = 16,
                  .algorithm = "RING",
                  .protocol = "SIMPLE",
                  .group = nullptr};
    void* call = nullptr;
    table_->start(context_, &call, &event);
    table_->stop(call);
    for (uint8_t channel = 0; channel < kChannels; ++channel) {
      gpusonde_nccl_event_v5 kernel{};
      kernel.type = GPUSONDE_NCCL_KERNEL_CH;
      kernel.parent = call;
      kernel.kernel_ch = {.channel = channel, .timer = 1};
      void* running = nullptr;
      table_->start(context_, &running, &kernel);
      gpusonde_nccl_state_v4 timer{.timer = 2};
      table_->record_state(running, GPUSONDE_NCCL_STATE_KERNEL_CH_STOP, &timer);
      table_->stop(running);
    }
  }
  // Waits until the library's thread has sent what there is, and discards it.
  void Drain() const {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    char batch[8192];
    while (::recv(consumer_, batch, sizeof batch, MSG_DONTWAIT) > 0) {
    }
  }
  bool wanted() const { return __atomic_load_n(&mask_, __ATOMIC_RELAXED) != 0; }

 private:
  Plugin() {
    int ends[2];
    struct stat status{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) != 0 || ::fstat(ends[1], &status) != 0) std::abort();
    consumer_ = ends[0];
    static std::string variable =
        "GPUSONDE_INJECT_SOCKET=" + std::to_string(ends[1]) + ":" + std::to_string(status.st_ino);
    if (std::getenv("NCCL_BENCH_ASLEEP") == nullptr) ::putenv(variable.data());
    void* library = ::dlopen(GPUSONDE_INJECT_LIBRARY, RTLD_NOW);
    table_ = static_cast<const gpusonde_nccl_profiler_v5*>(::dlsym(library, "ncclProfiler_v6"));
    table_->init(&context_, 42, &mask_, "bench", 1, 1, 0, Log);
  }

  int consumer_ = -1;
  const gpusonde_nccl_profiler_v5* table_ = nullptr;
  void* context_ = nullptr;
  int mask_ = 0;
  uint64_t sequence_ = 0;
};

// A burst each iteration; NCCL_BENCH_ASLEEP=1 for a library without a consumer, which NCCL would not even
// call.
void NcclCollective(benchmark::State& state) {
  Plugin& plugin = Plugin::Get();
  if (plugin.wanted() == (std::getenv("NCCL_BENCH_ASLEEP") != nullptr))
    return state.SkipWithError("the plugin has not noticed its consumer");
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kBurst; ++i) plugin.Collective();
    state.SetIterationTime(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() /
                           kBurst);
    plugin.Drain();
  }
}
BENCHMARK(NcclCollective)->UseManualTime()->Iterations(20)->Unit(benchmark::kNanosecond);

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
