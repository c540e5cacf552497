// SPDX-License-Identifier: Apache-2.0
#include "serve_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "model/tables/api_calls.h"
#include "model/tables/binaries.h"
#include "model/tables/devices.h"
#include "model/tables/evidence.h"
#include "model/tables/functions.h"
#include "model/tables/gpu_sessions.h"
#include "model/tables/incidents.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/locations.h"
#include "model/tables/memcpys.h"
#include "model/tables/metrics.h"
#include "model/tables/processes.h"
#include "model/tables/samples.h"
#include "model/tables/sources.h"
#include "model/tables/stacks.h"
#include "model/tables/steps.h"
#include "model/tables/threads.h"

namespace gpusonde {
namespace {

constexpr int64_t kPeriodS = 10;
constexpr size_t kDistinct = 2000;  // stacks in a period
constexpr size_t kSamples = 2500;   // in a period: 13 busy CPUs at 19 Hz
constexpr size_t kNewStacks = 20;   // of a period, never seen before
constexpr size_t kReturning = 80;   // of a period, seen before, but not in the last one
constexpr size_t kMinDepth = 8, kMaxDepth = 90;
constexpr uint64_t kLocations = 40'000, kFunctions = 20'000, kBinaries = 60;
constexpr int kProcesses = 20, kThreads = 8, kCpus = 64, kGpus = 2;
constexpr int kKernels = 100, kNames = 8, kSampledCalls = 5, kCopies = 2;  // of a GPU in a second
constexpr int64_t kIncidentEveryS = 3600;
constexpr std::array<std::string_view, 12> kGpuMetrics = {
    "gpu.utilization", "gpu.memory.utilization", "gpu.memory.used",   "gpu.power",
    "gpu.temperature", "gpu.clock.sm",           "gpu.clock.memory",  "gpu.pcie.rx",
    "gpu.pcie.tx",     "gpu.sm.active",          "gpu.tensor.active", "gpu.dram.active"};

Id128 ServeId(std::string_view kind, uint64_t number = 0) {
  return IdHasher("serve bench").Add(kind).Add(number).Finish();
}
Id128 ProcessId(int number) { return ServeId("process", static_cast<uint64_t>(number)); }
Id128 DeviceId(int number) { return ServeId("device", static_cast<uint64_t>(number)); }

int32_t PidOf(int process) { return 1000 + process * 100; }

Id128 LocationId(int32_t number) {
  static const std::vector<Id128> ids = [] {
    std::vector<Id128> made;
    for (uint64_t location = 0; location < kLocations; ++location)
      made.push_back(ServeId("location", location));
    return made;
  }();
  return ids[static_cast<size_t>(number)];
}

Id128 StackId(const std::vector<int32_t>& root_first) {
  std::vector<Id128> leaf_first;
  for (auto location = root_first.rbegin(); location != root_first.rend(); ++location)
    leaf_first.push_back(LocationId(*location));
  return HashIds("stack", leaf_first);
}

model::Function FunctionOf(uint64_t number) {
  return {ServeId("function", number),
          fmt::format("framework::module_{}::Executor<{}>::run_of_some_length(Tensor const&, int)",
                      number % 211, number),
          fmt::format("_ZN9framework10module_{}8ExecutorI{}E18run_of_some_lengthERK6Tensori", number % 211,
                      number),
          fmt::format("/src/framework/module_{}.cpp", number % 211), static_cast<int32_t>(number % 2000)};
}

}  // namespace

ServeLoad::ServeLoad(uint64_t seed) : random_(seed), named_locations_(kLocations) {}

// Branches off from an earlier stack: shared near the root, its own near the leaf.
ServeLoad::Stack ServeLoad::NewStack() {
  std::vector<int32_t> stack;
  if (!stacks_.empty()) {
    const std::vector<int32_t>& other =
        stacks_[stacks_.size() - 1 - Below(std::min<uint64_t>(stacks_.size(), 500))].locations;
    stack.assign(other.begin(), other.begin() + static_cast<ptrdiff_t>(1 + Below(other.size())));
  }
  stack.resize(std::min(stack.size(), kMaxDepth - 1));
  const size_t depth = std::min(kMaxDepth, std::max(kMinDepth, stack.size() + 1 + Below(20)));
  // Some functions are in most stacks.
  while (stack.size() < depth)
    stack.push_back(
        static_cast<int32_t>(std::min({Below(kLocations), Below(kLocations), Below(kLocations)})));
  const Id128 id = StackId(stack);
  return {.locations = std::move(stack), .id = id};
}

void ServeLoad::NextWorkingSet() {
  const bool first = working_.empty();
  const size_t fresh = first ? kDistinct : kNewStacks;
  if (!first) {
    std::ranges::shuffle(working_, random_);
    working_.resize(kDistinct - kNewStacks - kReturning);
    std::vector<bool> used(stacks_.size());
    for (const int32_t stack : working_) used[static_cast<size_t>(stack)] = true;
    while (working_.size() < kDistinct - kNewStacks) {
      const size_t stack = Below(stacks_.size());
      if (used[stack]) continue;
      used[stack] = true;
      working_.push_back(static_cast<int32_t>(stack));
    }
  }
  for (size_t i = 0; i < fresh; ++i) {
    stacks_.push_back(NewStack());
    working_.push_back(static_cast<int32_t>(stacks_.size() - 1));
  }
  drawn_ = working_;
  while (drawn_.size() < kSamples) drawn_.push_back(working_[std::min(Below(kDistinct), Below(kDistinct))]);
  std::ranges::shuffle(drawn_, random_);
}

std::vector<model::Batch> ServeLoad::Second(int64_t start_ns) {
  std::vector<model::Batch> frames;
  if (std::exchange(day_, store::DayOf(start_ns)) != store::DayOf(start_ns)) {
    for (Stack& stack : stacks_) stack.named = false;
    named_locations_.assign(kLocations, false);
    AddProcesses(start_ns, frames);
  }
  if (second_ % kPeriodS == 0) NextWorkingSet();
  const size_t count = kSamples / kPeriodS;
  std::vector<int32_t> stacks(drawn_.end() - static_cast<ptrdiff_t>(count), drawn_.end());
  drawn_.resize(drawn_.size() - count);
  model::BatchBuilder samples(model::kSamples);
  for (size_t i = 0; i < count; ++i) {
    // A stack is of one process, in one or two of its threads.
    const int process = stacks[i] % kProcesses;
    samples.Append(
        {.time_ns = start_ns + static_cast<int64_t>(i) * kNanosPerSecond / static_cast<int64_t>(count),
         .process = ProcessId(process),
         .tid = PidOf(process) + (stacks[i] / kProcesses + static_cast<int32_t>(Below(2))) % kThreads,
         .cpu = static_cast<int32_t>(Below(kCpus)),
         .stack = stacks_[static_cast<size_t>(stacks[i])].id,
         .weight_ns = 52'631'578});
  }
  std::vector<model::Batch> work;
  AddGpuWork(start_ns, stacks, work);
  AddNames(stacks, frames);
  frames.push_back(samples.Take());
  std::ranges::move(work, std::back_inserter(frames));
  AddMetrics(start_ns, frames);
  if (second_ % kIncidentEveryS == kIncidentEveryS / 2) AddIncident(start_ns, frames);
  ++second_;
  for (const model::Batch& frame : frames)
    if (frame.table != model::kStacks.name()) rows_[frame.table] += static_cast<int64_t>(frame.rows);
  return frames;
}

void ServeLoad::AddProcesses(int64_t start_ns, std::vector<model::Batch>& frames) {
  model::BatchBuilder sources(model::kSources);
  sources.Append({.source = ServeId("source"),
                  .kind = model::SourceKind::kAgent,
                  .host = "simulated",
                  .cpus = kCpus,
                  .sampling_hz = 19,
                  .started_ns = start_ns});
  model::BatchBuilder processes(model::kProcesses);
  model::BatchBuilder threads(model::kThreads);
  for (int process = 0; process < kProcesses; ++process) {
    processes.Append({.process = ProcessId(process),
                      .source = ServeId("source"),
                      .pid = PidOf(process),
                      .name = fmt::format("worker{}", process),
                      .command = fmt::format("python3 train.py --rank {} --config /etc/job.yaml", process),
                      .executable = "/usr/bin/python3.11",
                      .cgroup = fmt::format("/slurm/job_{}", process % 3),
                      .started_ns = start_ns});
    for (int thread = 0; thread < kThreads; ++thread)
      threads.Append({ProcessId(process), PidOf(process) + thread, fmt::format("worker{}", thread)});
  }
  model::BatchBuilder devices(model::kDevices);
  model::BatchBuilder sessions(model::kGpuSessions);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    devices.Append({.device = DeviceId(gpu),
                    .source = ServeId("source"),
                    .ordinal = gpu,
                    .uuid = fmt::format("GPU-simulated-{}", gpu),
                    .name = "Simulated H100",
                    .simulated = true});
    sessions.Append({.process = ProcessId(gpu), .session = 1, .start_ns = start_ns});
  }
  model::BatchBuilder binaries(model::kBinaries);
  for (uint64_t binary = 0; binary < kBinaries; ++binary)
    binaries.Append({ServeId("binary", binary), fmt::format("{:040x}", binary * 0x9E3779B9u),
                     fmt::format("/usr/lib/x86_64-linux-gnu/libframework_{}.so", binary),
                     fmt::format("libframework_{}.so", binary)});
  for (model::Batch batch :
       {sources.Take(), processes.Take(), threads.Take(), devices.Take(), sessions.Take(), binaries.Take()})
    frames.push_back(std::move(batch));
}

// The stacks that this day's file lacks, and what they consist of.
void ServeLoad::AddNames(const std::vector<int32_t>& stacks, std::vector<model::Batch>& frames) {
  model::BatchBuilder new_stacks(model::kStacks);
  model::BatchBuilder locations(model::kLocations);
  model::BatchBuilder functions(model::kFunctions);
  for (const int32_t number : stacks) {
    Stack& stack = stacks_[static_cast<size_t>(number)];
    if (std::exchange(stack.named, true)) continue;
    if (!std::exchange(stack.sent, true)) ++rows_["stacks"];
    model::Stack row{stack.id, {}};
    for (auto frame = stack.locations.rbegin(); frame != stack.locations.rend(); ++frame) {
      row.locations.push_back(LocationId(*frame));
      const auto location = static_cast<size_t>(*frame);
      if (named_locations_[location]) continue;
      named_locations_[location] = true;
      const model::Function function = FunctionOf(location % kFunctions);
      functions.Append(function);
      locations.Append({LocationId(*frame),
                        location % 10 < 2 ? model::FrameKind::kPython : model::FrameKind::kNative,
                        ServeId("binary", location % kBinaries),
                        static_cast<int64_t>(location * 64),
                        {function.function},
                        {static_cast<int64_t>(location % 2000)}});
    }
    new_stacks.Append(row);
  }
  if (functions.rows() > 0) frames.push_back(functions.Take());
  if (locations.rows() > 0) frames.push_back(locations.Take());
  if (new_stacks.rows() > 0) frames.push_back(new_stacks.Take());
}

// Adds the stacks of sampled launches to `stacks`.
void ServeLoad::AddGpuWork(int64_t start_ns, std::vector<int32_t>& stacks,
                           std::vector<model::Batch>& frames) {
  model::BatchBuilder packs(model::kKernelPacks);
  model::BatchBuilder calls(model::kApiCalls);
  model::BatchBuilder copies(model::kMemcpys);
  model::BatchBuilder steps(model::kSteps);
  for (int gpu = 0; gpu < kGpus; ++gpu) {
    std::vector<model::KernelPack> named(kNames);
    for (int i = 0; i < kKernels; ++i) {
      const int64_t offset_ns = i * (kNanosPerSecond / kKernels);
      const auto duration_ns = static_cast<int64_t>(2'000'000 + Below(5'000'000));
      model::KernelPack& pack = named[static_cast<size_t>(i % kNames)];
      ++pack.count;
      pack.duration_ns += duration_ns;
      pack.end_ns = std::max(pack.end_ns, start_ns + offset_ns + duration_ns);
      pack.offsets_ns.push_back(offset_ns);
      pack.durations_ns.push_back(duration_ns);
      pack.correlations.push_back(++correlation_);
      const int64_t launched_ns = start_ns + offset_ns - 20'000;
      if (i % (kKernels / kSampledCalls) == 0) {
        stacks.push_back(working_[Below(kDistinct)]);
        calls.Append({.process = ProcessId(gpu),
                      .tid = PidOf(gpu),
                      .session = 1,
                      .correlation = correlation_,
                      .start_ns = launched_ns,
                      .end_ns = launched_ns + 5'000,
                      .domain = "cuda_runtime",
                      .name = "cudaLaunchKernel",
                      .stack = stacks_[static_cast<size_t>(stacks.back())].id,
                      .probability = double{kSampledCalls} / kKernels});
      }
      if (i % (kKernels / kCopies) == 0)
        copies.Append({.process = ProcessId(gpu),
                       .device = DeviceId(gpu),
                       .session = 1,
                       .correlation = ++correlation_,
                       .stream = 7,
                       .start_ns = start_ns + offset_ns,
                       .end_ns = start_ns + offset_ns + 300'000,
                       .bytes = 1 << 24,
                       .kind = "htod",
                       .source_memory = "pinned",
                       .target_memory = "device"});
    }
    for (int name = 0; name < kNames; ++name) {
      model::KernelPack& pack = named[static_cast<size_t>(name)];
      pack.process = ProcessId(gpu);
      pack.device = DeviceId(gpu);
      pack.session = 1;
      pack.context = 1;
      pack.stream = 7;
      pack.name = fmt::format("_ZN7kernels{}sm90_xmma_gemm_bf16_tilesize_{}Ev", name, name * 64);
      pack.grid_x = 128;
      pack.block_x = 256;
      pack.start_ns = start_ns;
      packs.Append(pack);
    }
    for (int64_t half = 0; half < 2; ++half)
      steps.Append({.process = ProcessId(gpu),
                    .type = ServeId("step"),
                    .ordinal = second_ * 2 + half,
                    .start_ns = start_ns + half * kNanosPerSecond / 2,
                    .end_ns = start_ns + (half + 1) * kNanosPerSecond / 2});
  }
  for (model::Batch batch : {packs.Take(), calls.Take(), copies.Take(), steps.Take()})
    frames.push_back(std::move(batch));
}

void ServeLoad::AddMetrics(int64_t start_ns, std::vector<model::Batch>& frames) {
  model::BatchBuilder metrics(model::kMetrics);
  for (int gpu = 0; gpu < kGpus; ++gpu)
    for (const std::string_view metric : kGpuMetrics)
      metrics.Append({.time_ns = start_ns,
                      .source = ServeId("source"),
                      .device = DeviceId(gpu),
                      .process = std::nullopt,
                      .metric = std::string(metric),
                      .value = static_cast<double>(Below(100))});
  frames.push_back(metrics.Take());
}

void ServeLoad::AddIncident(int64_t start_ns, std::vector<model::Batch>& frames) {
  const Id128 incident = ServeId("incident", static_cast<uint64_t>(start_ns));
  model::BatchBuilder incidents(model::kIncidents);
  incidents.Append({.incident = incident,
                    .process = ProcessId(0),
                    .start_ns = start_ns,
                    .end_ns = start_ns + 30 * kNanosPerSecond,
                    .seen_ns = start_ns + 2 * kNanosPerSecond,
                    .named_ns = start_ns + 3 * kNanosPerSecond,
                    .slowdown = 1.8,
                    .cause = "cpu_contention",
                    .confidence = 0.9,
                    .sentence = "Steps slowed 1.8×: another program took the CPU."});
  model::BatchBuilder evidence(model::kEvidence);
  evidence.Append({.incident = incident,
                   .signal = "host.pressure.cpu",
                   .before = 1,
                   .during = 52,
                   .score = 3,
                   .sentence = "CPU pressure (PSI, some) 52 % over the last 5 s"});
  frames.push_back(incidents.Take());
  frames.push_back(evidence.Take());
}

}  // namespace gpusonde
