// SPDX-License-Identifier: Apache-2.0
// Query times for GPU work in the store of `gpusonde up`: an hour of a program that launches 10,000 kernels a
// second on one device, 250 of them with a stack. And of what `gpusonde import` makes of a trace: a row for
// each kernel, and a launch with a stack for each.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <time.h>

#include <memory>
#include <vector>

#include "base/time.h"
#include "bench.h"
#include "model/batch.h"
#include "model/tables/api_calls.h"
#include "model/tables/kernels.h"
#include "node_feed.h"
#include "store/live/live_store.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/recordings/recording.h"
#include "store/tracks/tracks.h"

namespace gpusonde {
namespace {

constexpr int64_t kFirstNs = 20'000 * kNanosPerDay;  // 2024-10-04
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

// Four processes with the same correlation ids, as ranks have, 145,000 kernels a second in all.
store::Store& ImportedTrace() {
  static const std::unique_ptr<store::Store> store = [] {
    constexpr int64_t kKernels = 1'000'000, kRanks = 4, kNames = 20, kBatch = 100'000;
    auto made = Must(store::CreateInMemory());
    model::BatchBuilder kernels(model::kKernels);
    model::BatchBuilder calls(model::kApiCalls);
    for (int64_t i = 0; i < kKernels; ++i) {
      const Id128 process{5, static_cast<uint64_t>(i % kRanks)};
      const int64_t launch_ns = kFirstNs + i * 6'900;
      calls.Append({.process = process,
                    .tid = 100,
                    .session = 1,
                    .correlation = i / kRanks,
                    .start_ns = launch_ns,
                    .end_ns = launch_ns + 3'000,
                    .domain = "cuda_runtime",
                    .name = "cudaLaunchKernel",
                    .stack = Id128{4, static_cast<uint64_t>(i % 2)},
                    .probability = 1});
      kernels.Append({.process = process,
                      .device = {6, static_cast<uint64_t>(i % kRanks)},
                      .session = 1,
                      .correlation = i / kRanks,
                      .stream = 7,
                      .start_ns = launch_ns + 5'000,
                      .end_ns = launch_ns + 25'000,
                      .name = fmt::format("void kernel_{}<float, 256>(float const*, float*, unsigned int)",
                                          i * 7919 % kNames)});
      if ((i + 1) % kBatch == 0) Must(made->Append(std::vector{kernels.Take(), calls.Take()}));
    }
    return made;
  }();
  return *store;
}

void ReadGpuProfileOfATrace(benchmark::State& state) {
  store::Store& store = ImportedTrace();
  for (auto _ : state) {
    const double before_s = CpuSeconds();
    benchmark::DoNotOptimize(Must(store::ReadGpuProfile(store, {})));
    state.SetIterationTime(CpuSeconds() - before_s);
  }
  // Of a million kernels; a page over five million asks for what costs up to 2.5 s.
  state.SetLabel("goal: <= 500 ms");
}
BENCHMARK(ReadGpuProfileOfATrace)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(5);

// Minutes.
BENCHMARK(ReadGpuProfile)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadGpuStrips)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadDeviceUse)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadTimeline)->Arg(1)->Arg(15)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadProfileWhileIdle)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
