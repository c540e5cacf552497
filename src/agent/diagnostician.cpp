// SPDX-License-Identifier: Apache-2.0
#include "agent/diagnostician.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/host_files.h"
#include "agent/named_processes.h"
#include "agent/signal_rows.h"
#include "agent/silent_processes.h"
#include "base/log.h"
#include "base/time.h"
#include "model/tables/drops.h"
#include "model/tables/signals.h"
#include "sources/ebpf/host_signals.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

std::optional<ebpf::HostSignals> OpenSignals() {
  Result<ebpf::HostSignals> signals = ebpf::HostSignals::Create();
  if (!signals.has_value()) {
    LogWarn("causes of slow steps are not observed: {}", signals.error().message);
    return std::nullopt;
  }
  return std::move(*signals);
}

}  // namespace

struct Diagnostician::State {
  explicit State(Options options_in) : options(std::move(options_in)), diagnosis(NewDiagnosis()) {
    processes.SetSource(options.source, options.epoch_offset_ns);
  }

  Options options;
  // Loaded when the first program uses a GPU: that takes 0.05 to 0.1 s.
  std::optional<ebpf::HostSignals> signals;
  bool signals_opened = false;
  diagnose::Diagnosis diagnosis;
  bool recalling = false;  // reports nothing
  bool reported_absent = false;
  bool network_failed = false;
  int64_t network_ns = 0;  // when a wait for the network was last reported; 0: never

  NamedProcesses processes{
      [this](int32_t pid) { return signals.has_value() ? signals->FindProcess(pid) : std::nullopt; }};
  SignalRows signal_rows;
  HostFiles files;
  SilentProcesses silent;
  model::BatchBuilder<decltype(model::kSignals)> rows{model::kSignals};
  model::BatchBuilder<decltype(model::kDrops)> drops{model::kDrops};

  diagnose::Diagnosis NewDiagnosis();
  void Follow(int32_t pid);
  void FollowGpuProcesses();
  std::vector<model::Batch> DrainSignals();
  void WatchNetwork(int64_t now_ns);
  void WriteDrops();
};

Diagnostician::Diagnostician(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Diagnostician::Diagnostician(Diagnostician&&) noexcept = default;
Diagnostician& Diagnostician::operator=(Diagnostician&&) noexcept = default;
Diagnostician::~Diagnostician() = default;

std::vector<model::Batch> Diagnostician::Round(std::span<const model::Batch> gathered) {
  State& state = *state_;
  state.processes.BeginRound(MonotonicNow());
  for (const model::Batch& batch : gathered) {
    state.diagnosis.Ingest(batch);
    state.processes.Ingest(batch);
  }
  state.FollowGpuProcesses();
  std::vector<model::Batch> batches = state.DrainSignals();
  for (const model::Batch& batch : batches) state.diagnosis.Ingest(batch);
  state.diagnosis.Advance(MonotonicNow() + state.options.epoch_offset_ns);
  std::ranges::move(state.diagnosis.DrainRows(), std::back_inserter(batches));
  return batches;
}

std::vector<model::Batch> Diagnostician::Finish(std::span<const model::Batch> gathered) {
  std::vector<model::Batch> batches = Round(gathered);
  if (state_->signals.has_value()) state_->signals->Stop();
  const int64_t now_ns = MonotonicNow() + state_->options.epoch_offset_ns;
  if (state_->options.ends_incidents)
    state_->diagnosis.Abandon(now_ns);
  else
    state_->diagnosis.Finish(now_ns);
  std::ranges::move(state_->diagnosis.DrainRows(), std::back_inserter(batches));
  return batches;
}

void Diagnostician::Recall(const std::function<Status(diagnose::Diagnosis&)>& earlier) {
  state_->recalling = true;
  if (const Status recalled = earlier(state_->diagnosis); !recalled.has_value()) {
    LogWarn("the previous run's data could not be recalled for diagnosis: {}", recalled.error().message);
    state_->diagnosis = state_->NewDiagnosis();
  }
  (void)state_->diagnosis.DrainRows();
  state_->recalling = false;
}

std::vector<model::Batch> Diagnostician::EndSource() {
  state_->diagnosis.Abandon(MonotonicNow() + state_->options.epoch_offset_ns);
  return state_->diagnosis.DrainRows();
}

void Diagnostician::SetSource(const Id128& source, int64_t epoch_offset_ns) {
  state_->options.source = source;
  state_->options.epoch_offset_ns = epoch_offset_ns;
  state_->processes.SetSource(source, epoch_offset_ns);
  state_->diagnosis = state_->NewDiagnosis();
  Rewrite();
}

void Diagnostician::Rewrite() { state_->processes.Rewrite(); }

diagnose::Diagnosis Diagnostician::State::NewDiagnosis() {
  return diagnose::Diagnosis({.awaits_signals = options.with_kernel,
                              .report =
                                  [this](const diagnose::Report& report) {
                                    if (!recalling) options.on_incident(report);
                                  },
                              .warn =
                                  [this](const model::Warning& warning) {
                                    if (!recalling) options.on_warning(warning);
                                  }});
}

// Follows the process and its existing descendants, such as data loaders.
void Diagnostician::State::Follow(int32_t pid) {
  if (options.with_kernel && !std::exchange(signals_opened, true)) signals = OpenSignals();
  if (!signals.has_value()) return;
  if (const Status attached = signals->Follow(pid); !attached.has_value()) {
    LogWarn("causes of slow steps are not observed: {}", attached.error().message);
    if (attached.error().code != ErrorCode::kOutOfSpace) signals.reset();
    return;
  }
  for (const int32_t descendant : proc::ListDescendants(pid)) (void)signals->Follow(descendant);
  if (!std::exchange(reported_absent, true) && !signals->absent().empty())
    LogWarn("this kernel doesn't report {}: slow steps with such a cause stay unexplained",
            fmt::join(signals->absent(), ", "));
}

void Diagnostician::State::FollowGpuProcesses() {
  const std::map<Id128, int32_t> gpu_processes = diagnosis.GpuProcesses();
  for (const auto& [id, pid] : gpu_processes)
    if (!files.IsWorkload(pid)) Follow(pid);
  files.SetWorkloads(gpu_processes);
}

std::vector<model::Batch> Diagnostician::State::DrainSignals() {
  const int64_t now_ns = MonotonicNow();
  const auto identify = [this](int32_t pid) { return processes.Identify(pid); };
  if (signals.has_value()) {
    const Status drained = signals->Drain(sources::VisitOnly([&](const ebpf::SignalSum& sum) {
      if (sum.signal == GPUSONDE_SIGNAL_NETWORK) network_ns = now_ns;
      if (sum.tid != 0) silent.NoteActivity(sum.pid, sum.tid, now_ns);
      signal_rows.Ingest(sum);
    }));
    if (!drained.has_value()) LogWarn("{}", drained.error().message);
    WatchNetwork(now_ns);
    signal_rows.Write(options.source, options.epoch_offset_ns, identify, rows);
  }
  files.Write(options.source, options.epoch_offset_ns, now_ns, identify, rows);
  silent.Write(
      options.source, options.epoch_offset_ns, now_ns, identify,
      [this](int32_t pid) { return files.IsWorkload(pid); }, rows);
  WriteDrops();
  std::vector<model::Batch> batches;
  if (std::optional<model::Batch> named = processes.DrainRows(); named.has_value())
    batches.push_back(std::move(*named));
  if (rows.rows() > 0) batches.push_back(rows.Take());
  if (drops.rows() > 0) batches.push_back(drops.Take());
  return batches;
}

// Watches packets that leave the machine only while a profiled process waits for the network: it costs time
// for every packet.
void Diagnostician::State::WatchNetwork(int64_t now_ns) {
  constexpr int64_t kForNs = 60 * kNanosPerSecond;
  const bool watch = !network_failed && network_ns != 0 && now_ns - network_ns < kForNs;
  if (const Status watched = signals->WatchNetwork(watch); !watched.has_value()) {
    network_failed = true;
    LogWarn("the network's other users are not observed: {}", watched.error().message);
  }
}

void Diagnostician::State::WriteDrops() {
  if (!signals.has_value()) return;
  model::AppendDrops(signals->DrainDrops(), MonotonicNow() + options.epoch_offset_ns, options.source, drops);
}

}  // namespace gpusonde::agent
