// SPDX-License-Identifier: Apache-2.0
#include "agent/named_processes.h"

#include <utility>

#include "base/time.h"
#include "model/batch_rows.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

// How long signals about a process may still arrive after its end.
constexpr int64_t kLateNs = 60 * kNanosPerSecond;

}  // namespace

void NamedProcesses::SetSource(const Id128& source, int64_t epoch_offset_ns) {
  for (auto& [id, process] : processes_) {
    process.row.source = source;
    process.row.started_ns += epoch_offset_ns - epoch_offset_ns_;
    if (process.row.exited_ns.has_value()) *process.row.exited_ns += epoch_offset_ns - epoch_offset_ns_;
  }
  source_ = source;
  epoch_offset_ns_ = epoch_offset_ns;
}

void NamedProcesses::Ingest(const model::Batch& batch) {
  if (batch.table != model::kProcesses.name()) return;
  for (model::Process& row : model::RowsOf(model::kProcesses, batch)) {
    const Id128 id = row.process;
    const bool ended = row.exited_ns.has_value();
    Known& process = processes_[id];
    if (!ended || !by_pid_.contains(row.pid)) by_pid_[row.pid] = id;
    process.row = std::move(row);
    process.written = true;
    if (ended) End(id, process);
  }
}

void NamedProcesses::BeginRound(int64_t now_ns) {
  now_ns_ = now_ns;
  identified_.clear();
  for (; !ended_.empty() && now_ns - ended_.front().ended_ns > kLateNs; ended_.pop_front()) {
    const auto process = processes_.find(ended_.front().id);
    if (process == processes_.end()) continue;
    const auto at = by_pid_.find(process->second.row.pid);
    if (at != by_pid_.end() && at->second == process->first) by_pid_.erase(at);
    processes_.erase(process);
  }
  if (now_ns - checked_ns_ >= kCheckNs) WriteEnds();
}

// A source that reports exits knows the exact time, so an end is written only if none has arrived one check
// later.
void NamedProcesses::WriteEnds() {
  checked_ns_ = now_ns_;
  for (auto& [id, process] : processes_) {
    if (process.ended || Runs(id, process)) continue;
    if (process.missing_ns == 0) {
      process.missing_ns = now_ns_;
      continue;
    }
    process.row.exited_ns = process.missing_ns + epoch_offset_ns_;
    rows_.Append(process.row);
    End(id, process);
  }
}

// Asks about the pid alone, as there may be thousands. Of a pid that was reused, only the newest process
// runs. One whose pid an unrelated process without a row has reused is found to have ended when that one has.
bool NamedProcesses::Runs(const Id128& id, const Known& process) const {
  const auto newest = by_pid_.find(process.row.pid);
  if (newest != by_pid_.end() && newest->second != id) return false;
  return proc::HasProcess(process.row.pid);
}

void NamedProcesses::End(const Id128& id, Known& process) {
  if (std::exchange(process.ended, true)) return;
  ended_.push_back({now_ns_, id});
  // Thousands may end in a minute, and command lines are long.
  process.row = {.process = id,
                 .source = process.row.source,
                 .pid = process.row.pid,
                 .parent_pid = process.row.parent_pid,
                 .name = std::move(process.row.name),
                 .started_ns = process.row.started_ns,
                 .exited_ns = process.row.exited_ns};
}

std::optional<Id128> NamedProcesses::Identify(int32_t pid) {
  const auto [found, is_new] = identified_.try_emplace(pid);
  if (!is_new) return found->second;
  if (boot_id_.empty()) boot_id_ = proc::ReadHost().boot_id;
  std::optional<int64_t> start_ticks;
  std::string name;
  if (const Result<proc::ProcessInfo> now = proc::ReadProcessStat(pid); now.has_value()) {
    start_ticks = now->start_ticks;
    name = now->name;
  } else if (const auto other = look_up_(pid); other.has_value()) {
    start_ticks = other->start_ticks;
    name = other->name;
  }
  if (start_ticks.has_value())
    found->second = proc::MakeProcessId(boot_id_, pid, *start_ticks);
  else if (const auto last = by_pid_.find(pid); last != by_pid_.end())
    found->second = last->second;
  if (!found->second.has_value()) return std::nullopt;
  const Id128 id = *found->second;
  by_pid_[pid] = id;
  const auto [at, first] = processes_.try_emplace(id);
  Known& process = at->second;
  if (first)
    process.row = {.process = id,
                   .source = source_,
                   .pid = pid,
                   .started_ns = proc::MonotonicFromTicks(*start_ticks) + epoch_offset_ns_};
  // A process has another name after exec.
  if (!process.written || (!name.empty() && process.row.name != name)) Write(id, process, name);
  return id;
}

void NamedProcesses::Write(const Id128& id, Known& process, const std::string& name) {
  model::Process& row = process.row;
  if (!name.empty()) row.name = name;
  if (const Result<proc::ProcessInfo> info = proc::ReadProcess(row.pid);
      info.has_value() && proc::MakeProcessId(boot_id_, row.pid, info->start_ticks) == id) {
    row.parent_pid = info->parent_pid;
    row.command = info->command;
    row.executable = info->executable;
    row.cgroup = info->cgroup;
    row.user_id = info->user_id;
  }
  row.source = source_;
  rows_.Append(row);
  process.written = true;
}

void NamedProcesses::Rewrite() {
  for (auto& [id, process] : processes_) process.written = false;
}

std::optional<model::Batch> NamedProcesses::DrainRows() {
  return rows_.rows() > 0 ? std::optional(rows_.Take()) : std::nullopt;
}

}  // namespace gpusonde::agent
