// SPDX-License-Identifier: Apache-2.0
#include "agent/proc_events.h"

#include <utility>

#include "base/time.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

perf::SidebandEvent Now(decltype(perf::SidebandEvent::what) what) {
  return {MonotonicNow(), std::move(what)};
}

std::map<int32_t, std::string> ThreadsOf(int32_t pid) {
  std::map<int32_t, std::string> threads;
  for (proc::ThreadInfo& thread : proc::ReadThreads(pid)) threads[thread.tid] = std::move(thread.name);
  return threads;
}

}  // namespace

void ProcEvents::Follow(int32_t pid) {
  const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
  if (info.has_value()) processes_[pid] = {info->name, info->executable, ThreadsOf(pid)};
}

Status ProcEvents::Drain(const Visit& visit) {
  for (auto at = processes_.begin(); at != processes_.end();) {
    auto& [pid, seen] = *at;
    // New children usually have a greater pid and are read in this same round; otherwise in the next.
    for (const int32_t child : proc::ListChildren(pid)) {
      if (processes_.contains(child)) continue;
      visit(Now(perf::ForkEvent{.pid = child, .tid = child, .parent_pid = pid}));
      processes_[child].threads[child] = "";
    }
    LookAt(pid, seen, visit);
    at = seen.threads.empty() ? processes_.erase(at) : std::next(at);
  }
  return {};
}

void ProcEvents::LookAt(int32_t pid, Seen& seen, const Visit& visit) {
  const std::map<int32_t, std::string> threads = ThreadsOf(pid);
  // A zombie no longer has a program.
  if (const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
      info.has_value() && !info->executable.empty()) {
    const bool exec = seen.executable != info->executable;
    if (exec || seen.name != info->name)
      visit(Now(perf::CommEvent{.pid = pid, .tid = pid, .exec = exec, .name = info->name}));
    seen.name = info->name;
    seen.executable = info->executable;
  }
  for (const auto& [tid, name] : threads) {
    const auto [known, is_new] = seen.threads.try_emplace(tid, name);
    if (is_new) visit(Now(perf::ForkEvent{.pid = pid, .tid = tid, .parent_pid = pid}));
    if ((is_new || known->second != name) && tid != pid)
      visit(Now(perf::CommEvent{.pid = pid, .tid = tid, .exec = false, .name = name}));
    known->second = name;
  }
  for (auto at = seen.threads.begin(); at != seen.threads.end();) {
    if (threads.contains(at->first)) {
      ++at;
      continue;
    }
    visit(Now(perf::ExitEvent{.pid = pid, .tid = at->first}));
    at = seen.threads.erase(at);
  }
}

}  // namespace gpusonde::agent
