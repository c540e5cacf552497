// SPDX-License-Identifier: Apache-2.0
#include "agent/cpu_profiler.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <limits>

#include "agent/process_table.h"
#include "agent/rows.h"
#include "agent/stack_interner.h"
#include "base/log.h"
#include "base/time.h"
#include "base/version.h"
#include "sources/ebpf/cpu_sampler.h"
#include "sources/perf/sideband.h"

namespace gpusonde::agent {
namespace {

// A raw sample waiting for its turn; its frames lie in State::frames.
struct Pending {
  int64_t time_ns;
  int32_t pid, tid, cpu;
  size_t first_frame;
  uint32_t kernel_frames, user_frames;
};

// Errors about hidden kernel addresses don't stop a profile; they make it poorer, which doctor explains.
std::optional<symbols::KernelSymbols> LoadKernelSymbols() {
  Result<symbols::KernelSymbols> symbols = symbols::KernelSymbols::Load();
  if (symbols.has_value()) return std::move(*symbols);
  LogWarn("kernel functions have no names: {}", symbols.error().message);
  return std::nullopt;
}

}  // namespace

struct CpuProfiler::State {
  State(ebpf::CpuSampler sampler_in, perf::Sideband sideband_in, model::Source source_in, bool every_process)
      : sampler(std::move(sampler_in)),
        sideband(std::move(sideband_in)),
        source(std::move(source_in)),
        processes({.host = proc::ReadHost(),
                   .source = source.source,
                   .epoch_offset_ns = source.epoch_offset_ns,
                   .every_process = every_process},
                  binaries, rows),
        stacks(LoadKernelSymbols(), binaries, processes, rows) {}

  ebpf::CpuSampler sampler;
  perf::Sideband sideband;
  model::Source source;
  Rows rows;
  symbols::BinaryTable binaries;
  ProcessTable processes;
  StackInterner stacks;
  model::DropCounts drops;

  std::vector<uint64_t> frames;
  std::vector<Pending> samples;
  std::vector<perf::SidebandEvent> events;

  Result<std::vector<model::Batch>> Gather(int64_t until_ns);
  void TakeSample(const Pending& sample);
  void Forget(size_t count);
  void WriteDrops();
};

CpuProfiler::CpuProfiler(std::unique_ptr<State> state) : state_(std::move(state)) {}
CpuProfiler::CpuProfiler(CpuProfiler&&) noexcept = default;
CpuProfiler& CpuProfiler::operator=(CpuProfiler&&) noexcept = default;
CpuProfiler::~CpuProfiler() = default;

Result<CpuProfiler> CpuProfiler::Create(const Options& options) {
  const proc::HostInfo host = proc::ReadHost();
  model::Source source{.kind = options.every_process ? model::SourceKind::kAgent : model::SourceKind::kRecord,
                       .host = host.name,
                       .boot_id = host.boot_id,
                       .kernel = host.kernel_release,
                       .version = std::string(kVersion),
                       .cpus = host.cpus,
                       .sampling_hz = options.frequency_hz,
                       .command = options.command.empty() ? std::nullopt : std::optional(options.command),
                       .epoch_offset_ns = options.epoch_offset_ns};
  source.started_ns = MonotonicNow() + source.epoch_offset_ns;
  source.source = IdHasher("source").Add(host.boot_id).Add(static_cast<uint64_t>(source.started_ns)).Finish();

  // The side-band first: no mapping may be missed that a sample refers to.
  ASSIGN_OR_RETURN(perf::Sideband sideband, perf::Sideband::Create());
  ASSIGN_OR_RETURN(ebpf::CpuSampler sampler,
                   ebpf::CpuSampler::Create(
                       {.frequency_hz = options.frequency_hz, .every_process = options.every_process}));
  auto state = std::make_unique<State>(std::move(sampler), std::move(sideband), std::move(source),
                                       options.every_process);
  state->rows.sources.Append(state->source);
  return CpuProfiler(std::move(state));
}

Status CpuProfiler::Follow(int32_t pid) {
  TRY(state_->processes.Follow(pid));
  return state_->sampler.Follow(pid);
}

Result<std::vector<model::Batch>> CpuProfiler::Poll() { return state_->Gather(MonotonicNow()); }

Result<std::vector<model::Batch>> CpuProfiler::Finish() {
  state_->sampler.Stop();
  state_->source.ended_ns = MonotonicNow() + state_->source.epoch_offset_ns;
  state_->rows.sources.Append(state_->source);
  return state_->Gather(std::numeric_limits<int64_t>::max());
}

void CpuProfiler::Rewrite() {
  state_->rows.sources.Append(state_->source);
  state_->processes.Rewrite();
  state_->stacks.Rewrite();
}

void CpuProfiler::CountFailedRows(int64_t rows) { state_->drops.Add(model::DropReason::kSpoolFailed, rows); }

bool CpuProfiler::any_alive() const { return state_->processes.any_alive(); }

void CpuProfiler::Wait(int timeout_ms) {
  std::vector<pollfd> fds{{.fd = state_->sampler.wake_fd(), .events = POLLIN, .revents = 0}};
  for (const int fd : state_->sideband.wake_fds()) fds.push_back({.fd = fd, .events = POLLIN, .revents = 0});
  ::poll(fds.data(), fds.size(), timeout_ms);
}

// Samples and events come through different buffers, one per CPU, and must be brought into one order: a
// sample means what was mapped when it was taken. Everything stamped before `until_ns` is in its buffer by
// the time that the buffers are read, samples first; what is later waits for the next round.
Result<std::vector<model::Batch>> CpuProfiler::State::Gather(int64_t until_ns) {
  TRY(sampler.Drain([this](const ebpf::RawSample& sample) {
    samples.push_back({sample.time_ns, sample.pid, sample.tid, sample.cpu, frames.size(),
                       static_cast<uint32_t>(sample.kernel_frames.size()),
                       static_cast<uint32_t>(sample.user_frames.size())});
    frames.insert(frames.end(), sample.kernel_frames.begin(), sample.kernel_frames.end());
    frames.insert(frames.end(), sample.user_frames.begin(), sample.user_frames.end());
  }));
  sideband.Drain(events);
  std::ranges::stable_sort(samples, {}, &Pending::time_ns);
  std::ranges::stable_sort(events, {}, &perf::SidebandEvent::time_ns);

  size_t next_event = 0, next_sample = 0;
  for (; next_sample < samples.size() && samples[next_sample].time_ns <= until_ns; ++next_sample) {
    const Pending& sample = samples[next_sample];
    for (; next_event < events.size() && events[next_event].time_ns <= sample.time_ns; ++next_event)
      processes.Apply(events[next_event]);
    TakeSample(sample);
  }
  for (; next_event < events.size() && events[next_event].time_ns <= until_ns; ++next_event)
    processes.Apply(events[next_event]);
  Forget(next_sample);
  events.erase(events.begin(), events.begin() + static_cast<ptrdiff_t>(next_event));

  processes.WriteChanges();
  WriteDrops();
  return rows.Take();
}

// Removes the first `count` samples; the frames of the others move to the front.
void CpuProfiler::State::Forget(size_t count) {
  samples.erase(samples.begin(), samples.begin() + static_cast<ptrdiff_t>(count));
  std::vector<uint64_t> kept;
  for (Pending& sample : samples) {
    const auto first = frames.begin() + static_cast<ptrdiff_t>(sample.first_frame);
    sample.first_frame = kept.size();
    kept.insert(kept.end(), first, first + sample.kernel_frames + sample.user_frames);
  }
  frames = std::move(kept);
}

void CpuProfiler::State::TakeSample(const Pending& sample) {
  Process& process = processes.FindSampled(sample.pid, sample.time_ns);
  const std::span all(frames);
  const Id128 stack =
      stacks.Intern(process, all.subspan(sample.first_frame, sample.kernel_frames),
                    all.subspan(sample.first_frame + sample.kernel_frames, sample.user_frames), drops);
  rows.samples.Append({.time_ns = sample.time_ns + source.epoch_offset_ns,
                       .process = process.id,
                       .tid = sample.tid,
                       .cpu = sample.cpu,
                       .stack = stack,
                       .state = model::ThreadState::kOnCpu,
                       .weight_ns = sampler.period_ns()});
}

void CpuProfiler::State::WriteDrops() {
  drops.Merge(sampler.TakeDrops());
  drops.Merge(sideband.TakeDrops());
  const model::DropCounts taken = drops.Take();
  for (const model::DropInfo& reason : model::kDropReasons)
    if (const int64_t count = taken.Of(reason.reason); count > 0)
      rows.drops.Append({.time_ns = MonotonicNow() + source.epoch_offset_ns,
                         .source = source.source,
                         .reason = reason.reason,
                         .count = count});
}

}  // namespace gpusonde::agent
