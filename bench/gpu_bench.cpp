// SPDX-License-Identifier: Apache-2.0
// How fast GPU questions are answered over what `gpusonde up` keeps: an hour of one program that launches
// 10,000 kernels a second on one device, 250 of them with a stack.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/time.h"
#include "bench.h"
#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "store/gpu_query.h"
#include "store/live_store.h"
#include "store/profile_query.h"

namespace gpusonde {
namespace {

constexpr int64_t kFirstNs = int64_t{20'000} * 86'400 * kNanosPerSecond;  // 2024-10-04
constexpr int64_t kMinutes = 60;
constexpr int64_t kKernelsPerSecond = 10'000;
constexpr int64_t kSampledEvery = 40;
constexpr int64_t kCopiesPerSecond = 100;
constexpr size_t kNames = 80;
constexpr int kStacks = 300;
constexpr int kDepth = 40;
constexpr size_t kStreams = 4;
constexpr int32_t kPid = 1000;

Id128 IdOf(std::string_view kind, int number = 0) {
  return IdHasher(kind).Add(static_cast<uint64_t>(number)).Finish();
}

template <class Table>
model::Batch RowsOf(const Table& table, const std::vector<typename Table::Row>& rows) {
  model::BatchBuilder builder(table);
  for (const auto& row : rows) builder.Append(row);
  return builder.Take();
}

// What the rows below point to.
std::vector<model::Batch> Names() {
  std::mt19937_64 random(1);
  std::vector<model::Function> functions;
  std::vector<model::Location> locations;
  for (int i = 0; i < 2'000; ++i) {
    functions.push_back({IdOf("function", i), fmt::format("function_{}", i), "", "train.py", 1});
    locations.push_back({IdOf("location", i),
                         model::FrameKind::kPython,
                         std::nullopt,
                         std::nullopt,
                         {IdOf("function", i)},
                         {7}});
  }
  std::vector<model::Stack> stacks;
  for (int i = 0; i < kStacks; ++i) {
    stacks.push_back({IdOf("stack", i), {}});
    for (int depth = 0; depth < kDepth; ++depth)
      stacks.back().locations.push_back(IdOf("location", static_cast<int>(random() % 2'000)));
  }
  return {RowsOf(model::kSources, {{.source = IdOf("source"),
                                    .kind = model::SourceKind::kAgent,
                                    .host = "node",
                                    .cpus = 2,
                                    .sampling_hz = 19,
                                    .started_ns = kFirstNs}}),
          RowsOf(model::kProcesses, {{.process = IdOf("process"), .pid = kPid, .name = "python3"}}),
          RowsOf(model::kThreads, {{IdOf("process"), kPid, "python3"}}),
          RowsOf(model::kDevices, {{.device = IdOf("device"),
                                    .source = IdOf("source"),
                                    .name = "Simulated H100",
                                    .simulated = true}}),
          RowsOf(model::kGpuSessions, {{.process = IdOf("process"), .session = 1, .start_ns = kFirstNs}}),
          RowsOf(model::kFunctions, functions),
          RowsOf(model::kLocations, locations),
          RowsOf(model::kStacks, stacks)};
}

// Everything that happens in a second, as the agent writes it.
std::vector<model::Batch> Second(int64_t second, std::mt19937_64& random) {
  const Id128 process = IdOf("process");
  const Id128 device = IdOf("device");
  const int64_t first_ns = kFirstNs + second * kNanosPerSecond;
  std::array<std::array<model::KernelPack, kStreams>, kNames> packs;
  model::BatchBuilder calls(model::kApiCalls);
  model::BatchBuilder copies(model::kMemcpys);
  model::BatchBuilder samples(model::kSamples);
  constexpr int64_t kPeriodNs = kNanosPerSecond / kKernelsPerSecond;
  for (int64_t i = 0; i < kKernelsPerSecond; ++i) {
    const int64_t start_ns = first_ns + i * kPeriodNs;
    const int64_t correlation = second * kKernelsPerSecond + i;
    const auto name = static_cast<size_t>(random() % kNames);
    const auto duration_ns = static_cast<int64_t>(20'000 + random() % 90'000);
    model::KernelPack& pack = packs[name][random() % kStreams];
    ++pack.count;
    pack.duration_ns += duration_ns;
    pack.end_ns = std::max(pack.end_ns, start_ns + duration_ns);
    pack.offsets_ns.push_back(start_ns - first_ns);
    pack.durations_ns.push_back(duration_ns);
    pack.correlations.push_back(correlation);
    if (random() % kSampledEvery == 0)
      calls.Append({.process = process,
                    .tid = kPid,
                    .session = 1,
                    .correlation = correlation,
                    .start_ns = start_ns - 20'000,
                    .end_ns = start_ns - 15'000,
                    .domain = "cuda_runtime",
                    .name = "cudaLaunchKernel",
                    .stack = IdOf("stack", static_cast<int>(name * 3 + random() % 3)),
                    .probability = 1.0 / kSampledEvery});
    if (i % (kKernelsPerSecond / kCopiesPerSecond) == 0)
      copies.Append({.process = process,
                     .device = device,
                     .session = 1,
                     .correlation = correlation,
                     .stream = 7,
                     .start_ns = start_ns,
                     .end_ns = start_ns + 30'000,
                     .bytes = 1 << 20,
                     .kind = "htod",
                     .source_memory = "pinned",
                     .target_memory = "device"});
  }
  model::BatchBuilder kernels(model::kKernelPacks);
  for (size_t name = 0; name < packs.size(); ++name)
    for (size_t stream = 0; stream < packs[name].size(); ++stream) {
      model::KernelPack& pack = packs[name][stream];
      if (pack.count == 0) continue;
      pack.process = process;
      pack.device = device;
      pack.session = 1;
      pack.context = 1;
      pack.stream = 7 + static_cast<int64_t>(stream);
      pack.name = fmt::format("_ZN7kernels{}sm90_xmma_gemm_bf16_tilesize_{}Ev", name, name * 64);
      pack.grid_x = 128;
      pack.block_x = 256;
      pack.start_ns = first_ns;
      kernels.Append(pack);
    }
  for (int64_t i = 0; i < int64_t{2} * 19; ++i)
    samples.Append({.time_ns = first_ns + i * (kNanosPerSecond / 38),
                    .process = process,
                    .tid = kPid,
                    .stack = IdOf("stack", static_cast<int>(random() % kStacks)),
                    .weight_ns = 52'631'578});
  return {kernels.Take(), calls.Take(), copies.Take(), samples.Take()};
}

// What `gpusonde up` puts into a store, as it does it.
class Feed {
 public:
  explicit Feed(store::LiveStore& store) : store_(store) { Hold(Names()); }

  void Minute() {
    for (const int64_t end = second_ + 60; second_ < end;) Hold(Second(second_++, random_));
  }
  // A minute's frames without handing them over.
  std::vector<std::vector<model::Batch>> Prepare() {
    std::vector<std::vector<model::Batch>> frames;
    for (const int64_t end = second_ + 60; second_ < end;) frames.push_back(Second(second_++, random_));
    return frames;
  }
  void Hold(std::vector<model::Batch> frames) {
    const auto count = std::ssize(frames);
    Must(store_.Hold(store::DayOf(kFirstNs), {1, 1}, sequence_, std::move(frames)));
    sequence_ += count;
  }

 private:
  store::LiveStore& store_;
  std::mt19937_64 random_{2};
  int64_t sequence_ = 1;
  int64_t second_ = 0;
};

store::LiveStore& Node() {
  static const Folder folder;
  static std::unique_ptr<store::LiveStore> store = [] {
    auto made = Must(store::LiveStore::Open(folder / "live"));
    Feed feed(*made);
    for (int64_t minute = 0; minute < kMinutes; ++minute) {
      feed.Minute();
      Must(made->CommitHeld());
    }
    return made;
  }();
  return *store;
}

// The last so many minutes.
model::Selection Last(int64_t minutes) {
  return {.from_ns = kFirstNs + (kMinutes - minutes) * 60 * kNanosPerSecond,
          .to_ns = kFirstNs + kMinutes * 60 * kNanosPerSecond};
}

double CpuSeconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The store's part of listening always: CPU time for a minute of frames, committed every half minute as
// LiveStore::Hold does it by the clock.
void StoreAMinute(benchmark::State& state) {
  const Folder folder;
  auto store = Must(store::LiveStore::Open(folder / "live"));
  Feed feed(*store);
  for (auto _ : state) {
    std::vector<std::vector<model::Batch>> seconds = feed.Prepare();
    const double before_s = CpuSeconds();
    for (std::vector<model::Batch>& second : seconds) feed.Hold(std::move(second));
    Must(store->CommitHeld());
    state.SetIterationTime(CpuSeconds() - before_s);
  }
  // Half of what listening may take of two CPUs.
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

// Minutes.
BENCHMARK(ReadGpuProfile)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadGpuStrips)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadDeviceUse)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(ReadProfileWhileIdle)->Arg(1)->Arg(15)->Arg(60)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
