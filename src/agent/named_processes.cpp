// SPDX-License-Identifier: Apache-2.0
#include "agent/named_processes.h"

#include "base/time.h"
#include "model/batch_rows.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

// How long signals about a process may still arrive after its end.
constexpr int64_t kLateNs = 60 * kNanosPerSecond;

}  // namespace

void NamedProcesses::Ingest(const model::Batch& batch) {
  if (batch.table != model::kProcesses.name()) return;
  for (const model::Process& process : model::RowsOf(model::kProcesses, batch)) {
    written_[process.process] = process.name;
    if (process.exited_ns.has_value()) ended_.push_back({MonotonicNow(), process.pid, process.process});
  }
}

void NamedProcesses::BeginRound() {
  identified_.clear();
  for (const int64_t now_ns = MonotonicNow(); !ended_.empty() && now_ns - ended_.front().ended_ns > kLateNs;
       ended_.pop_front()) {
    const Ended& process = ended_.front();
    written_.erase(process.id);
    if (const auto at = known_.find(process.pid); at != known_.end() && at->second.id == process.id)
      known_.erase(at);
  }
}

std::optional<Id128> NamedProcesses::Identify(int32_t pid) {
  const auto [found, is_new] = identified_.try_emplace(pid);
  if (!is_new) return found->second;
  if (boot_id_.empty()) boot_id_ = proc::ReadHost().boot_id;
  Known& process = known_[pid];
  std::string name;
  if (const Result<proc::ProcessInfo> now = proc::ReadProcessStat(pid); now.has_value()) {
    process = {now->start_ticks, proc::MakeProcessId(boot_id_, pid, now->start_ticks)};
    name = now->name;
  } else if (const auto other = look_up_(pid); other.has_value()) {
    process = {other->start_ticks, proc::MakeProcessId(boot_id_, pid, other->start_ticks)};
    name = other->name;
  }
  if (process.id.IsZero()) return std::nullopt;
  found->second = process.id;
  const auto [row_name, first] = written_.try_emplace(process.id, name);
  // A process has another name after exec.
  if (!first && (name.empty() || row_name->second == name)) return process.id;
  row_name->second = name;
  Write(pid, process, name);
  return process.id;
}

void NamedProcesses::Write(int32_t pid, const Known& process, const std::string& name) {
  model::Process row{.process = process.id,
                     .source = source_,
                     .pid = pid,
                     .name = name,
                     .started_ns = proc::MonotonicFromTicks(process.start_ticks) + epoch_offset_ns_};
  if (const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
      info.has_value() && info->start_ticks == process.start_ticks) {
    row.parent_pid = info->parent_pid;
    row.command = info->command;
    row.executable = info->executable;
    row.cgroup = info->cgroup;
    row.user_id = info->user_id;
  }
  rows_.Append(row);
}

std::optional<model::Batch> NamedProcesses::DrainRows() {
  return rows_.rows() > 0 ? std::optional(rows_.Take()) : std::nullopt;
}

}  // namespace gpusonde::agent
