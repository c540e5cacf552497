// SPDX-License-Identifier: Apache-2.0
// How fast GPU questions are answered over what `gpusonde up` keeps: an hour of one program that launches
// 10,000 kernels a second on one device, 250 of them with a stack.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/tables/api_calls.h"
#include "model/tables/devices.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/kernels.h"
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
constexpr int kNames = 80;
constexpr int kStacks = 300;
constexpr int kDepth = 40;
constexpr int kStreams = 4;
constexpr int32_t kPid = 1000;

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "gpusonde-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

template <class T>
T Must(Result<T> result) {
  if (result.has_value()) return std::move(result).value();
  fmt::print(stderr, "bench_gpu: {}\n", result.error().message);
  std::abort();
}
void Must(const Status& status) {
  if (status.has_value()) return;
  fmt::print(stderr, "bench_gpu: {}\n", status.error().message);
  std::abort();
}

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

// Everything that happens in a minute.
std::vector<model::Batch> Minute(int64_t minute, std::mt19937_64& random) {
  const Id128 process = IdOf("process");
  const Id128 device = IdOf("device");
  const int64_t first_ns = kFirstNs + minute * 60 * kNanosPerSecond;
  std::vector<std::string> names;
  for (int i = 0; i < kNames; ++i)
    names.push_back(fmt::format("_ZN7kernels{}sm90_xmma_gemm_bf16_tilesize_{}Ev", i, i * 64));
  model::BatchBuilder kernels(model::kKernels);
  model::BatchBuilder calls(model::kApiCalls);
  model::BatchBuilder copies(model::kMemcpys);
  model::BatchBuilder samples(model::kSamples);
  constexpr int64_t kPeriodNs = kNanosPerSecond / kKernelsPerSecond;
  for (int64_t i = 0; i < 60 * kKernelsPerSecond; ++i) {
    const int64_t start_ns = first_ns + i * kPeriodNs;
    const int64_t correlation = minute * 60 * kKernelsPerSecond + i;
    const auto name = static_cast<size_t>(random() % kNames);
    const auto duration_ns = static_cast<int64_t>(20'000 + random() % 90'000);
    kernels.Append({.process = process,
                    .device = device,
                    .session = 1,
                    .correlation = correlation,
                    .context = 1,
                    .stream = 7 + static_cast<int64_t>(random() % kStreams),
                    .start_ns = start_ns,
                    .end_ns = start_ns + duration_ns,
                    .name = names[name],
                    .grid_x = 128,
                    .grid_y = 1,
                    .grid_z = 1,
                    .block_x = 256,
                    .block_y = 1,
                    .block_z = 1});
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
  for (int64_t i = 0; i < int64_t{60} * 2 * 19; ++i)
    samples.Append({.time_ns = first_ns + i * (kNanosPerSecond / 38),
                    .process = process,
                    .tid = kPid,
                    .stack = IdOf("stack", static_cast<int>(random() % kStacks)),
                    .weight_ns = 52'631'578});
  return {kernels.Take(), calls.Take(), copies.Take(), samples.Take()};
}

store::LiveStore& Node() {
  static const Folder folder;
  static std::unique_ptr<store::LiveStore> store = [] {
    auto made = Must(store::LiveStore::Open(folder / "live"));
    const store::Day day = store::DayOf(kFirstNs);
    int64_t sequence = 1;
    const std::vector<model::Batch> names = Names();
    Must(made->Commit(day, {1, 1}, sequence, names));
    sequence += std::ssize(names);
    std::mt19937_64 random(2);
    for (int64_t minute = 0; minute < kMinutes; ++minute) {
      const std::vector<model::Batch> rows = Minute(minute, random);
      Must(made->Commit(day, {1, 1}, sequence, rows));
      sequence += std::ssize(rows);
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

void CommitMinute(benchmark::State& state) {
  const Folder folder;
  auto store = Must(store::LiveStore::Open(folder / "live"));
  std::mt19937_64 random(3);
  int64_t sequence = 1;
  int64_t minute = 0;
  for (auto _ : state) {
    state.PauseTiming();
    const std::vector<model::Batch> rows = Minute(minute++, random);
    state.ResumeTiming();
    Must(store->Commit(store::DayOf(kFirstNs), {1, 1}, sequence, rows));
    sequence += std::ssize(rows);
  }
}
BENCHMARK(CommitMinute)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime()
    ->UseRealTime()
    ->Iterations(10);

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
