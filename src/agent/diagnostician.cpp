// SPDX-License-Identifier: Apache-2.0
#include "agent/diagnostician.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <unordered_map>
#include <utility>

#include "agent/signal_rows.h"
#include "base/log.h"
#include "base/time.h"
#include "model/batch_rows.h"
#include "model/tables/drops.h"
#include "model/tables/processes.h"
#include "model/tables/signals.h"
#include "sources/ebpf/host_signals.h"
#include "sources/proc/host_state.h"
#include "sources/proc/io_limits.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

using model::Metric;

// Turns a counter that only grows into its increase since the last call.
class Growth {
 public:
  std::optional<int64_t> Update(std::optional<int64_t> now) {
    const std::optional<int64_t> before = std::exchange(last_, now);
    if (!before.has_value() || !now.has_value() || *now < *before) return std::nullopt;
    return *now - *before;
  }

 private:
  std::optional<int64_t> last_;
};

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
  struct Known {
    int64_t start_ticks = 0;
    Id128 id;
  };
  // The CPU quota of a process's cgroup, read for throttling.
  struct Quota {
    std::vector<std::string> files;
    Growth throttled;
    proc::IoLimits io;
  };

  explicit State(Options options_in) : options(std::move(options_in)), diagnosis(NewDiagnosis()) {}

  Options options;
  // Loaded when the first program uses a GPU: that takes a quarter of a second.
  std::optional<ebpf::HostSignals> signals;
  bool signals_opened = false;
  diagnose::Diagnosis diagnosis;
  bool recalling = false;  // reports nothing
  std::string boot_id = proc::ReadHost().boot_id;
  bool reported_absent = false;
  bool reported_network = false;
  std::map<int32_t, Quota> quotas;  // by pid of a process with GPU work
  std::array<Growth, 3> pressure;
  Growth steal;
  int64_t looked_ns = 0;
  int64_t network_ns = 0;  // when a wait for the network was last reported; 0: never

  SignalRows signal_rows;
  std::unordered_map<int32_t, Known> known;                      // by pid
  std::unordered_map<int32_t, std::optional<Id128>> identified;  // in this round
  std::map<Id128, std::string> written;                          // names of processes that have a row
  struct Ended {
    int64_t ended_ns;
    int32_t pid;
    Id128 id;
  };
  std::deque<Ended> ended;  // by time; signals about them may still arrive
  model::BatchBuilder<decltype(model::kProcesses)> processes{model::kProcesses};
  model::BatchBuilder<decltype(model::kSignals)> rows{model::kSignals};
  model::BatchBuilder<decltype(model::kDrops)> drops{model::kDrops};

  diagnose::Diagnosis NewDiagnosis();
  void Learn(std::span<const model::Batch> gathered);
  void ForgetEnded();
  void Follow(int32_t pid);
  void FollowGpuProcesses();
  std::vector<model::Batch> DrainSignals();
  void WatchNetwork(int64_t now_ns);
  void LookAtFiles(int64_t now_ns);
  void AddSum(Metric metric, std::optional<Id128> process, std::optional<int64_t> sum, int64_t now_ns);
  std::optional<Id128> Identify(int32_t pid);
  void WriteDrops();
};

Diagnostician::Diagnostician(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Diagnostician::Diagnostician(Diagnostician&&) noexcept = default;
Diagnostician& Diagnostician::operator=(Diagnostician&&) noexcept = default;
Diagnostician::~Diagnostician() = default;

std::vector<model::Batch> Diagnostician::Round(std::span<const model::Batch> gathered) {
  State& state = *state_;
  state.Learn(gathered);
  state.ForgetEnded();
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
  state_->diagnosis.Finish(MonotonicNow() + state_->options.epoch_offset_ns);
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

std::vector<model::Batch> Diagnostician::SetSource(const Id128& source, int64_t epoch_offset_ns) {
  state_->diagnosis.Abandon(MonotonicNow() + state_->options.epoch_offset_ns);
  std::vector<model::Batch> last = state_->diagnosis.DrainRows();
  state_->options.source = source;
  state_->options.epoch_offset_ns = epoch_offset_ns;
  state_->diagnosis = state_->NewDiagnosis();
  Rewrite();
  return last;
}

void Diagnostician::Rewrite() { state_->written.clear(); }

diagnose::Diagnosis Diagnostician::State::NewDiagnosis() {
  return diagnose::Diagnosis({.report =
                                  [this](const diagnose::Report& report) {
                                    if (!recalling) options.on_incident(report);
                                  },
                              .warn =
                                  [this](const model::Warning& warning) {
                                    if (!recalling) options.on_warning(warning);
                                  }});
}

void Diagnostician::State::Learn(std::span<const model::Batch> gathered) {
  for (const model::Batch& batch : gathered) {
    diagnosis.Ingest(batch);
    if (batch.table != model::kProcesses.name()) continue;
    for (const model::Process& process : model::RowsOf(model::kProcesses, batch)) {
      written[process.process] = process.name;
      if (process.exited_ns.has_value()) ended.push_back({MonotonicNow(), process.pid, process.process});
    }
  }
}

void Diagnostician::State::ForgetEnded() {
  constexpr int64_t kLateNs = 60 * kNanosPerSecond;
  for (const int64_t now_ns = MonotonicNow(); !ended.empty() && now_ns - ended.front().ended_ns > kLateNs;
       ended.pop_front()) {
    const Ended& process = ended.front();
    written.erase(process.id);
    if (const auto at = known.find(process.pid); at != known.end() && at->second.id == process.id)
      known.erase(at);
  }
}

// Follows the process and its existing descendants, such as data loaders.
void Diagnostician::State::Follow(int32_t pid) {
  if (options.with_kernel && !std::exchange(signals_opened, true)) signals = OpenSignals();
  if (!signals.has_value()) return;
  if (const Status attached = signals->Follow(pid); !attached.has_value()) {
    LogWarn("causes of slow steps are not observed: {}", attached.error().message);
    signals.reset();
    return;
  }
  for (const int32_t descendant : proc::ListDescendants(pid)) (void)signals->Follow(descendant);
  if (!std::exchange(reported_absent, true) && !signals->absent().empty())
    LogWarn("this kernel doesn't report {}: slow steps with such a cause stay unexplained",
            fmt::join(signals->absent(), ", "));
}

void Diagnostician::State::FollowGpuProcesses() {
  const std::map<Id128, int32_t> gpu_processes = diagnosis.GpuProcesses();
  for (const auto& [id, pid] : gpu_processes) {
    if (quotas.contains(pid)) continue;
    quotas.emplace(pid, Quota{proc::CpuStatFiles(pid), {}, proc::IoLimits::Of(pid)});
    Follow(pid);
  }
  std::erase_if(quotas, [&](const auto& quota) {
    return std::ranges::none_of(gpu_processes,
                                [&](const auto& entry) { return entry.second == quota.first; });
  });
}

std::vector<model::Batch> Diagnostician::State::DrainSignals() {
  identified.clear();
  const int64_t now_ns = MonotonicNow();
  if (signals.has_value()) {
    const Status drained = signals->Drain(sources::VisitOnly([&](const ebpf::SignalSum& sum) {
      if (sum.signal == GPUSONDE_SIGNAL_NETWORK) network_ns = now_ns;
      signal_rows.Ingest(sum);
    }));
    if (!drained.has_value()) LogWarn("{}", drained.error().message);
    WatchNetwork(now_ns);
    signal_rows.Write(
        options.source, options.epoch_offset_ns, [this](int32_t pid) { return Identify(pid); }, rows);
  }
  LookAtFiles(now_ns);
  WriteDrops();
  std::vector<model::Batch> batches;
  if (processes.rows() > 0) batches.push_back(processes.Take());
  if (rows.rows() > 0) batches.push_back(rows.Take());
  if (drops.rows() > 0) batches.push_back(drops.Take());
  return batches;
}

// Watches packets that leave the machine only while a profiled process waits for the network: it costs time
// for every packet.
void Diagnostician::State::WatchNetwork(int64_t now_ns) {
  constexpr int64_t kForNs = 60 * kNanosPerSecond;
  const bool watch = network_ns != 0 && now_ns - network_ns < kForNs;
  if (const Status watched = signals->WatchNetwork(watch);
      !watched.has_value() && !std::exchange(reported_network, true))
    LogWarn("the network's other users are not observed: {}", watched.error().message);
}

void Diagnostician::State::LookAtFiles(int64_t now_ns) {
  if (quotas.empty()) {  // no workload to compare with
    looked_ns = 0;
    return;
  }
  AddSum(Metric::kHostPressureCpu, std::nullopt,
         pressure[0].Update(proc::ReadPressureNs(proc::Resource::kCpu)), now_ns);
  AddSum(Metric::kHostPressureIo, std::nullopt, pressure[1].Update(proc::ReadPressureNs(proc::Resource::kIo)),
         now_ns);
  AddSum(Metric::kHostPressureMemory, std::nullopt,
         pressure[2].Update(proc::ReadPressureNs(proc::Resource::kMemory)), now_ns);
  AddSum(Metric::kHostSteal, std::nullopt, steal.Update(proc::ReadStealNs()), now_ns);
  for (auto& [pid, quota] : quotas) {
    AddSum(Metric::kCgroupThrottled, Identify(pid),
           quota.throttled.Update(proc::ReadThrottledNs(quota.files)), now_ns);
    AddSum(Metric::kCgroupIoThrottled, Identify(pid), quota.io.TakeThrottledNs(), now_ns);
  }
  looked_ns = now_ns;
}

void Diagnostician::State::AddSum(Metric metric, std::optional<Id128> process, std::optional<int64_t> sum,
                                  int64_t now_ns) {
  if (!sum.has_value() || looked_ns == 0 || now_ns <= looked_ns) return;
  const bool of_process = metric == Metric::kCgroupThrottled || metric == Metric::kCgroupIoThrottled;
  if (of_process && !process.has_value()) return;
  rows.Append({.start_ns = looked_ns + options.epoch_offset_ns,
               .bucket_ns = now_ns - looked_ns,
               .source = options.source,
               .metric = std::string(model::InfoOf(metric).name),
               .process = process,
               .tid = std::nullopt,
               .other = std::nullopt,
               .values = {*sum}});
}

// The process that has this pid now; if it has ended, the one that had it, as we or the kernel knew it.
std::optional<Id128> Diagnostician::State::Identify(int32_t pid) {
  const auto [found, is_new] = identified.try_emplace(pid);
  if (!is_new) return found->second;
  Known& process = known[pid];
  std::string name;
  if (const Result<proc::ProcessInfo> now = proc::ReadProcessStat(pid); now.has_value()) {
    process = {now->start_ticks, proc::MakeProcessId(boot_id, pid, now->start_ticks)};
    name = now->name;
  } else if (const auto who = signals.has_value() ? signals->Who(pid) : std::nullopt; who.has_value()) {
    process = {who->start_ticks, proc::MakeProcessId(boot_id, pid, who->start_ticks)};
    name = who->name;
  }
  if (process.id.IsZero()) return std::nullopt;
  found->second = process.id;
  const auto [row_name, first] = written.try_emplace(process.id, name);
  // A process has another name after exec.
  if (!first && (name.empty() || row_name->second == name)) return process.id;
  row_name->second = name;
  const int64_t started_ns = proc::MonotonicFromTicks(process.start_ticks) + options.epoch_offset_ns;
  model::Process row{
      .process = process.id, .source = options.source, .pid = pid, .name = name, .started_ns = started_ns};
  if (const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
      info.has_value() && info->start_ticks == process.start_ticks) {
    row.parent_pid = info->parent_pid;
    row.command = info->command;
    row.executable = info->executable;
    row.cgroup = info->cgroup;
    row.user_id = info->user_id;
  }
  processes.Append(row);
  return process.id;
}

void Diagnostician::State::WriteDrops() {
  if (!signals.has_value()) return;
  const model::DropCounts counts = signals->DrainDrops();
  for (const model::DropInfo& reason : model::kDropReasons)
    if (const int64_t count = counts.Of(reason.reason); count > 0)
      drops.Append({.time_ns = MonotonicNow() + options.epoch_offset_ns,
                    .source = options.source,
                    .reason = reason.reason,
                    .count = count});
}

}  // namespace gpusonde::agent
