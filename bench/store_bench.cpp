// SPDX-License-Identifier: Apache-2.0
// Data at rest: how fast rows are written to the spool, the store and a recording, and query times over a day
// and a week of a node. The node is busy: 19 samples a second on each of two CPUs around the clock.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench.h"
#include "model/tables/binaries.h"
#include "model/tables/functions.h"
#include "model/tables/locations.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/threads.h"
#include "spool/codec.h"
#include "spool/spool.h"
#include "store/live/live_store.h"
#include "store/queries/profile_query.h"
#include "store/recordings/recording.h"

namespace gpusonde {
namespace {

constexpr int kProcesses = 20;
constexpr int kThreadsPerProcess = 5;
constexpr int kLocations = 20'000;
constexpr int kStacks = 5'000;
constexpr int kDepth = 30;
constexpr int64_t kDayNs = int64_t{86'400} * 1'000'000'000;
constexpr int64_t kSamplesPerDay = int64_t{19} * 2 * 86'400;
constexpr int64_t kFirstNs = int64_t{20'000} * kDayNs;  // 2024-10-04

Id128 IdOf(std::string_view kind, int number) {
  return IdHasher(kind).Add(static_cast<uint64_t>(number)).Finish();
}

// The rows that samples refer to.
std::vector<model::Batch> Names() {
  std::mt19937_64 random(1);
  model::BatchBuilder sources(model::kSources);
  sources.Append({.source = IdOf("source", 0),
                  .kind = model::SourceKind::kAgent,
                  .host = "node",
                  .cpus = 2,
                  .sampling_hz = 19,
                  .started_ns = kFirstNs});
  model::BatchBuilder processes(model::kProcesses);
  model::BatchBuilder threads(model::kThreads);
  for (int process = 0; process < kProcesses; ++process) {
    processes.Append({.process = IdOf("process", process), .pid = 1000 * (process + 1), .name = "python3"});
    for (int thread = 0; thread < kThreadsPerProcess; ++thread)
      threads.Append(
          {IdOf("process", process), 1000 * (process + 1) + thread, fmt::format("worker {}", thread)});
  }
  model::BatchBuilder binaries(model::kBinaries);
  for (int i = 0; i < 50; ++i)
    binaries.Append({IdOf("binary", i), "", "/usr/lib/", fmt::format("lib{}.so", i)});
  model::BatchBuilder functions(model::kFunctions);
  model::BatchBuilder locations(model::kLocations);
  for (int i = 0; i < kLocations; ++i) {
    functions.Append({IdOf("function", i), fmt::format("ns::Class<int>::Function{}(char const*)", i), "_ZN",
                      std::nullopt, std::nullopt});
    locations.Append({IdOf("location", i),
                      model::FrameKind::kNative,
                      IdOf("binary", i % 50),
                      i,
                      {IdOf("function", i)},
                      {0}});
  }
  model::BatchBuilder stacks(model::kStacks);
  for (int i = 0; i < kStacks; ++i) {
    std::vector<Id128> frames;
    for (int depth = 0; depth < kDepth; ++depth)
      frames.push_back(IdOf("location", static_cast<int>(random() % kLocations)));
    stacks.Append({IdOf("stack", i), frames});
  }
  std::vector<model::Batch> batches;
  batches.push_back(sources.Take());
  batches.push_back(processes.Take());
  batches.push_back(threads.Take());
  batches.push_back(binaries.Take());
  batches.push_back(functions.Take());
  batches.push_back(locations.Take());
  batches.push_back(stacks.Take());
  return batches;
}

// `count` samples from first_ns on; a few stacks have most of them, as in real programs.
model::Batch Samples(int64_t first_ns, int64_t count, std::mt19937_64& random) {
  static const std::vector<Id128> stacks = [] {
    std::vector<Id128> ids;
    for (int i = 0; i < kStacks; ++i) ids.push_back(IdOf("stack", i));
    return ids;
  }();
  static const std::vector<Id128> processes = [] {
    std::vector<Id128> ids;
    for (int i = 0; i < kProcesses; ++i) ids.push_back(IdOf("process", i));
    return ids;
  }();
  model::BatchBuilder builder(model::kSamples);
  for (int64_t i = 0; i < count; ++i) {
    const double skewed = std::pow(static_cast<double>(random() >> 11) * 0x1p-53, 4);
    const auto process = static_cast<size_t>(skewed * kProcesses);
    builder.Append({.time_ns = first_ns + i * (kDayNs / kSamplesPerDay),
                    .process = processes[process],
                    .tid = static_cast<int32_t>(1000 * (process + 1) + random() % kThreadsPerProcess),
                    .cpu = static_cast<int32_t>(random() % 2),
                    .stack = stacks[static_cast<size_t>(skewed * kStacks)],
                    .weight_ns = 52'631'578});
  }
  return builder.Take();
}

size_t BytesOf(const model::Batch& batch) {
  size_t bytes = 0;
  for (const model::ColumnData& column : batch.columns)
    bytes += column.values.size() + column.ends.size() * sizeof(uint32_t) + column.valid.size();
  return bytes;
}

void SpoolAppend(benchmark::State& state) {
  const Folder folder;
  auto writer = Must(spool::Writer::Open(folder / "spool"));
  std::mt19937_64 random(2);
  const model::Batch batch = Samples(kFirstNs, state.range(0), random);
  for (auto _ : state) {
    Must(writer.Append(batch));
    Must(writer.Sync());
    Must(writer.DropThrough(writer.last_sequence()));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(BytesOf(batch)));
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(SpoolAppend)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

void DecodeFrame(benchmark::State& state) {
  std::mt19937_64 random(2);
  const model::Batch batch = Samples(kFirstNs, 100'000, random);
  const auto bytes = Must(spool::EncodeBatch(batch));
  for (auto _ : state) benchmark::DoNotOptimize(Must(spool::DecodeBatch(bytes)));
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(BytesOf(batch)));
}
BENCHMARK(DecodeFrame)->Unit(benchmark::kMillisecond);

// Rows per second of the process's CPU time, DuckDB's threads included: on one core.
void StoreAppend(benchmark::State& state) {
  const Folder folder;
  auto store = Must(store::CreateRecording(folder / "store.sonde"));
  std::mt19937_64 random(3);
  const model::Batch batch = Samples(kFirstNs, state.range(0), random);
  for (auto _ : state) Must(store->Append({&batch, 1}));
  state.SetItemsProcessed(state.iterations() * state.range(0));
  if (state.range(0) >= 100'000) state.SetLabel("goal: >= 1000000 rows/s");
}
BENCHMARK(StoreAppend)
    ->Arg(1'000)
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->Unit(benchmark::kMillisecond)
    ->MeasureProcessCPUTime();

void WriteRecording(benchmark::State& state) {
  const Folder folder;
  std::mt19937_64 random(4);
  {
    auto writer = Must(spool::Writer::Open(folder / "spool"));
    for (const model::Batch& batch : Names()) Must(writer.Append(batch));
    for (int i = 0; i < 20; ++i) Must(writer.Append(Samples(kFirstNs + i * kDayNs, 100'000, random)));
    Must(writer.Sync());
  }
  for (auto _ : state) Must(store::WriteRecording(folder / "spool", folder / "run.sonde"));
  state.SetItemsProcessed(state.iterations() * 2'000'000);
  state.SetLabel("goal: >= 1000000 rows/s");
  state.counters["file_bytes_per_sample"] =
      static_cast<double>(std::filesystem::file_size(folder / "run.sonde")) / 2'000'000;
}
BENCHMARK(WriteRecording)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

// A live store with this many days, made once per process.
void MakeDays(store::LiveStore& store, int64_t from, int64_t to) {
  std::mt19937_64 random(5);
  constexpr int64_t kSamplesPerCommit = kSamplesPerDay / 24;
  for (int64_t made = from; made < to; ++made) {
    const store::Day day = store::DayOf(kFirstNs + made * kDayNs);
    const std::vector<model::Batch> names = Names();
    Must(store.Commit(day, {1, 1}, made * 1'000 + 1, names));
    for (int hour = 0; hour < 24; ++hour) {
      const model::Batch batch =
          Samples(kFirstNs + made * kDayNs + hour * (kDayNs / 24), kSamplesPerCommit, random);
      Must(store.Commit(day, {1, 1}, made * 1'000 + 100 + hour, {&batch, 1}));
    }
  }
}

store::LiveStore& Node(int64_t days) {
  static const Folder folder;
  static std::unique_ptr<store::LiveStore> store = Must(store::LiveStore::Open(folder / "live"));
  static int64_t made = 0;
  MakeDays(*store, made, days);
  made = std::max(made, days);
  return *store;
}

void SetGoal(benchmark::State& state) {
  if (state.range(0) == 7) state.SetLabel("goal: <= 200 ms");
}

model::Selection Days(int64_t days) { return {.from_ns = kFirstNs, .to_ns = kFirstNs + days * kDayNs}; }

void ReadProfile(benchmark::State& state) {
  store::LiveStore& store = Node(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadProfile(store, Days(state.range(0)))));
  SetGoal(state);
}
BENCHMARK(ReadProfile)->Arg(1)->Arg(7)->Unit(benchmark::kMillisecond)->UseRealTime();

// Like the first query after a start, with empty caches.
void ReadProfileFirst(benchmark::State& state) {
  static const Folder folder;
  static bool is_made = false;
  if (!is_made) MakeDays(*Must(store::LiveStore::Open(folder / "live")), 0, 7);
  is_made = true;
  for (auto _ : state) {
    state.PauseTiming();
    auto store = Must(store::LiveStore::Open(folder / "live"));
    state.ResumeTiming();
    benchmark::DoNotOptimize(Must(store::ReadProfile(*store, Days(state.range(0)))));
    state.PauseTiming();
    store.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(ReadProfileFirst)->Arg(7)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadProcesses(benchmark::State& state) {
  store::LiveStore& store = Node(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadProcesses(store, Days(state.range(0)))));
  SetGoal(state);
}
BENCHMARK(ReadProcesses)->Arg(1)->Arg(7)->Unit(benchmark::kMillisecond)->UseRealTime();

void ReadCpuStrip(benchmark::State& state) {
  store::LiveStore& store = Node(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::ReadCpuStrip(store, Days(state.range(0)), 600)));
  SetGoal(state);
}
BENCHMARK(ReadCpuStrip)->Arg(1)->Arg(7)->Unit(benchmark::kMillisecond)->UseRealTime();

void OpenLiveStore(benchmark::State& state) {
  const Folder folder;
  for (int day = 0; day < 7; ++day) {
    auto store = Must(store::LiveStore::Open(folder / "live"));
    const std::vector<model::Batch> names = Names();
    Must(store->Commit(store::DayOf(kFirstNs + day * kDayNs), {1, 1}, day * 1'000 + 1, names));
  }
  for (auto _ : state) benchmark::DoNotOptimize(Must(store::LiveStore::Open(folder / "live")));
}
BENCHMARK(OpenLiveStore)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace gpusonde

BENCHMARK_MAIN();
