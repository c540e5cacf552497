// SPDX-License-Identifier: Apache-2.0
// Query times for GPU work in the store of `gpusonde up`: an hour of a program that launches 10,000 kernels a
// second on one device, 250 of them with a stack.
#include <benchmark/benchmark.h>
#include <time.h>

#include <memory>
#include <vector>

#include "base/time.h"
#include "bench.h"
#include "node_feed.h"
#include "store/live/live_store.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/tracks/tracks.h"

namespace gpusonde {
namespace {

constexpr int64_t kFirstNs = int64_t{20'000} * 86'400 * kNanosPerSecond;  // 2024-10-04
constexpr int64_t kMinutes = 60;

store::LiveStore& Node() {
  static const Folder folder;
  static std::unique_ptr<store::LiveStore> store = [] {
    auto made = Must(store::LiveStore::Open(folder / "live"));
    NodeFeed feed(*made, {.first_ns = kFirstNs});
    for (int64_t minute = 0; minute < kMinutes; ++minute) {
      feed.Minute();
      Must(made->CommitHeld());
    }
    return made;
  }();
  return *store;
}

// The last `minutes` minutes.
model::Selection Last(int64_t minutes) {
  return {.from_ns = kFirstNs + (kMinutes - minutes) * 60 * kNanosPerSecond,
          .to_ns = kFirstNs + kMinutes * 60 * kNanosPerSecond};
}

double CpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The store's part of continuous profiling: CPU time for a minute of frames, committed every half minute, as
// LiveStore::Hold does.
void StoreAMinute(benchmark::State& state) {
  const Folder folder;
  auto store = Must(store::LiveStore::Open(folder / "live"));
  NodeFeed feed(*store, {.first_ns = kFirstNs});
  for (auto _ : state) {
    std::vector<std::vector<model::Batch>> seconds = feed.Prepare();
    const double before_s = CpuSeconds();
    for (std::vector<model::Batch>& second : seconds) feed.Hold(std::move(second));
    Must(store->CommitHeld());
    state.SetIterationTime(CpuSeconds() - before_s);
  }
  // Half of the goal for profiling on two CPUs.
  state.SetLabel("goal: <= 300 ms");
}
BENCHMARK(StoreAMinute)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(12);

void ReadGpuProfile(benchmark::State& state) {
  store::LiveStore& store = Node();
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadGpuProfile(store, Last(state.range(0)))));
}
void ReadGpuStrips(benchmark::State& state) {
  store::LiveStore& store = Node();
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadGpuStrips(store, Last(state.range(0)), 600)));
}
void ReadDeviceUse(benchmark::State& state) {
  store::LiveStore& store = Node();
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadDeviceUse(store, Last(state.range(0)))));
}
void ReadProfileWhileIdle(benchmark::State& state) {
  store::LiveStore& store = Node();
  model::Selection selection = Last(state.range(0));
  selection.while_gpu_idle = true;
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadProfile(store, selection)));
}
void ReadTimeline(benchmark::State& state) {
  store::LiveStore& store = Node();
  for (auto _ : state)
    benchmark::DoNotOptimize(Must(store::ReadTracks(store, Last(state.range(0)), {.columns = 3'600})));
}

// Minutes.
BENCHMARK(ReadGpuProfile)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadGpuStrips)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadDeviceUse)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadTimeline)->Arg(1)->Arg(15)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadProfileWhileIdle)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
