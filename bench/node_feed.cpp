// SPDX-License-Identifier: Apache-2.0
#include "node_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

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

namespace gpusonde {
namespace {

constexpr uint64_t kSampledEvery = 40;
constexpr int64_t kKernelsPerCopy = 100;
constexpr int kStacks = 300;
constexpr int kDepth = 40;
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

// The rows that others refer to.
std::vector<model::Batch> Names(int64_t started_ns, const std::string& host) {
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
                                    .host = host,
                                    .cpus = 2,
                                    .sampling_hz = 19,
                                    .started_ns = started_ns}}),
          RowsOf(model::kProcesses, {{.process = IdOf("process"), .pid = kPid, .name = "python3"}}),
          RowsOf(model::kThreads, {{IdOf("process"), kPid, "python3"}}),
          RowsOf(model::kDevices, {{.device = IdOf("device"),
                                    .source = IdOf("source"),
                                    .name = "Simulated H100",
                                    .simulated = true}}),
          RowsOf(model::kGpuSessions, {{.process = IdOf("process"), .session = 1, .start_ns = started_ns}}),
          RowsOf(model::kFunctions, functions),
          RowsOf(model::kLocations, locations),
          RowsOf(model::kStacks, stacks)};
}

}  // namespace

NodeFeed::NodeFeed(store::LiveStore& store, const Options& options) : store_(store), options_(options) {}

int64_t NodeFeed::NowNs() const { return options_.first_ns + second_ * kNanosPerSecond; }

// The rows of a second, as the agent writes them.
std::vector<model::Batch> NodeFeed::Second() {
  const Id128 process = IdOf("process");
  const Id128 device = IdOf("device");
  const int64_t first_ns = NowNs();
  const int64_t rate = options_.kernels_per_second;
  std::vector packs(options_.names, std::vector<model::KernelPack>(options_.streams));
  model::BatchBuilder calls(model::kApiCalls);
  model::BatchBuilder copies(model::kMemcpys);
  model::BatchBuilder samples(model::kSamples);
  for (int64_t i = 0; i < rate; ++i) {
    const int64_t start_ns = first_ns + i * (kNanosPerSecond / rate);
    const int64_t correlation = second_ * rate + i;
    const auto name = static_cast<size_t>(random_() % options_.names);
    const auto duration_ns = static_cast<int64_t>(20'000 + random_() % 90'000);
    model::KernelPack& pack = packs[name][random_() % options_.streams];
    ++pack.count;
    pack.duration_ns += duration_ns;
    pack.end_ns = std::max(pack.end_ns, start_ns + duration_ns);
    pack.offsets_ns.push_back(start_ns - first_ns);
    pack.durations_ns.push_back(duration_ns);
    pack.correlations.push_back(correlation);
    if (random_() % kSampledEvery == 0)
      calls.Append({.process = process,
                    .tid = kPid,
                    .session = 1,
                    .correlation = correlation,
                    .start_ns = start_ns - 20'000,
                    .end_ns = start_ns - 15'000,
                    .domain = "cuda_runtime",
                    .name = "cudaLaunchKernel",
                    .stack = IdOf("stack", static_cast<int>(name * 3 + random_() % 3)),
                    .probability = 1.0 / double{kSampledEvery}});
    if (i % kKernelsPerCopy == 0)
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
                    .stack = IdOf("stack", static_cast<int>(random_() % kStacks)),
                    .weight_ns = 52'631'578});
  ++second_;
  return {kernels.Take(), calls.Take(), copies.Take(), samples.Take()};
}

void NodeFeed::Minute() {
  for (const int64_t end = second_ + 60; second_ < end;) Hold(Second());
}

std::vector<std::vector<model::Batch>> NodeFeed::Prepare() {
  std::vector<std::vector<model::Batch>> frames;
  for (const int64_t end = second_ + 60; second_ < end;) frames.push_back(Second());
  return frames;
}

void NodeFeed::Hold(std::vector<model::Batch> frames) {
  // Each day's file is complete by itself.
  const store::Day day = store::DayOf(NowNs() - 1);
  if (std::exchange(day_, day) != day) Hold(Names(options_.first_ns, options_.host));
  const auto count = std::ssize(frames);
  Must(store_.Hold(day, {1, 1}, sequence_, std::move(frames)));
  sequence_ += count;
}

}  // namespace gpusonde
