// SPDX-License-Identifier: Apache-2.0
#include "agent/process_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/process_row.h"
#include "base/log.h"
#include "base/time.h"

namespace gpusonde::agent {
namespace {

// Memory without a file, in the kernel's words ("//anon", "[heap]", memfds, shared zero pages): JITs run code
// there. A memfd that the process executes (fexecve) is its program's file.
bool IsAnonymous(const std::string& path, const std::string& executable) {
  return path.empty() || path.starts_with("//") || path.starts_with("[heap]") ||
         path.starts_with("[stack]") || path.starts_with("[anon") ||
         (path.starts_with("/memfd:") && path != executable) || path.starts_with("/dev/zero") ||
         path.starts_with("anon_inode:");
}

// The kernel reports an exec before it has set the program's arguments: until then, /proc shows the file with
// an empty command line, for as long as the process waits for a CPU or the disk.
bool ReadMissingCommand(Process& process) {
  proc::ProcessInfo& info = process.info;
  if (!info.command.empty() || info.executable.empty() || process.exited_ns.has_value()) return false;
  Result<proc::ProcessInfo> now = proc::ReadProcess(info.pid);
  if (!now.has_value() || now->start_ticks != info.start_ticks || now->executable != info.executable)
    return false;
  info.command = std::move(now->command);
  return !info.command.empty();
}

}  // namespace

ProcessTable::ProcessTable(Options options, symbols::BinaryTable& binaries, Rows& rows)
    : options_(std::move(options)), binaries_(binaries), rows_(rows) {}

Process* ProcessTable::Known(int32_t pid) const {
  const auto found = by_pid_.find(pid);
  return found == by_pid_.end() ? nullptr : found->second.get();
}

Process* ProcessTable::Ended(int32_t pid) const {
  for (const auto* past : {&ended_, &ended_before_})
    for (const std::unique_ptr<Process>& process : *past)
      if (process->info.pid == pid) return process.get();
  return nullptr;
}

bool ProcessTable::HasThread(int32_t pid, int32_t tid) const {
  const Process* process = Known(pid);
  if (process == nullptr) return false;
  const auto thread = process->threads.find(tid);
  return thread != process->threads.end() && !thread->second.exited_ns.has_value();
}

// According to /proc, where another process may have its pid now.
bool ProcessTable::IsRunning(const Process& process) const {
  const Result<proc::ProcessInfo> now = proc::ReadProcessStat(process.info.pid);
  return now.has_value() &&
         proc::MakeProcessId(options_.host.boot_id, process.info.pid, now->start_ticks) == process.id;
}

std::optional<Id128> ProcessTable::Find(int32_t pid) const {
  const Process* process = Known(pid);
  if (process == nullptr) process = Ended(pid);
  return process == nullptr ? std::nullopt : std::optional(process->id);
}

Process* ProcessTable::Insert(proc::ProcessInfo info, int64_t known_since_ns) {
  auto process = std::make_unique<Process>();
  process->id = proc::MakeProcessId(options_.host.boot_id, info.pid, info.start_ticks);
  process->started_ns = proc::MonotonicFromTicks(info.start_ticks) + options_.epoch_offset_ns;
  process->known_since_ns = known_since_ns;
  process->visible = !options_.every_process;
  process->info = std::move(info);
  process->jit = std::make_unique<JitCode>(jit_budget_, process->info.user_id);
  Process* inserted = process.get();
  by_pid_[inserted->info.pid] = std::move(process);
  return inserted;
}

Process* ProcessTable::AddFromProc(int32_t pid) {
  const int64_t now = MonotonicNow();
  Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
  if (!info.has_value()) return nullptr;
  Process* process = Insert(std::move(*info), now);
  // Only a main thread is listed for long after its exit event.
  for (proc::ThreadInfo& thread : proc::ReadThreads(pid))
    if (thread.tid != pid || !proc::HasThreadEnded(pid, pid))
      process->threads[thread.tid] = {.name = std::move(thread.name), .started_ns = {}, .exited_ns = {}};
  process->living_threads = process->threads.size();
  for (const AddressSpace::Mapping& mapping : ReadMappings(*process)) Map(*process, mapping, now);
  return process;
}

Process* ProcessTable::AddByPid(int32_t pid, int32_t parent_pid, int64_t start_ns) {
  // The process usually still exists; /proc then has its name, command line and exact start.
  Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
  if (!info.has_value()) {
    info = proc::ProcessInfo{.pid = pid,
                             .parent_pid = parent_pid,
                             .namespace_pid = pid,
                             .start_ticks = proc::TicksFromMonotonic(start_ns)};
    if (const Process* parent = Known(parent_pid); parent != nullptr) {
      info->name = parent->info.name;
      info->command = parent->info.command;
      info->executable = parent->info.executable;
      info->cgroup = parent->info.cgroup;
      info->user_id = parent->info.user_id;
    }
  }
  return Insert(std::move(*info), start_ns);
}

Status ProcessTable::Follow(int32_t pid) {
  if (Known(pid) != nullptr) return {};
  const Process* process = AddFromProc(pid);
  if (process != nullptr && process->living_threads > 0) return {};
  by_pid_.erase(pid);  // its parent has yet to wait for it
  if (process == nullptr && proc::HasProcess(pid))
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("process {0} exists, but /proc/{0} can't be read: mount /proc, without hidepid for "
                    "this user",
                    pid));
  return Fail(ErrorCode::kNotFound, fmt::format("no process {}", pid));
}

Process& ProcessTable::FindSampled(int32_t pid, int64_t time_ns) {
  Process* process = Known(pid);
  if (process == nullptr) process = Ended(pid);
  if (process == nullptr) process = AddFromProc(pid);
  if (process == nullptr) process = AddByPid(pid, 0, time_ns);
  if (!process->visible) MakeVisible(*process);
  return *process;
}

void ProcessTable::MakeVisible(Process& process) {
  process.visible = true;
  process.changed = true;
  process.mappings.ForEach(
      [&](const AddressSpace::Mapping& mapping) { WriteMapping(process, mapping, process.known_since_ns); });
}

void ProcessTable::Map(Process& process, const AddressSpace::Mapping& mapping, int64_t time_ns) {
  if (!process.mappings.Map(mapping)) return;
  process.runs_anonymous_code |= mapping.binary == nullptr;
  if (mapping.binary != nullptr) process.jit->OpenDump(process.info.pid, mapping.binary->path);
  if (process.visible) WriteMapping(process, mapping, time_ns);
}

void ProcessTable::Apply(const perf::SidebandEvent& event) {
  std::visit([&](const auto& what) { On(what, event.time_ns); }, event.what);
}

void ProcessTable::On(const perf::MapEvent& event, int64_t time_ns) {
  Process* process = Known(event.pid);
  if (process == nullptr || time_ns < process->known_since_ns) return;
  if (process->mappings.size() >= kMaxMappings) ReplaceMappings(*process, ReadMappings(*process), time_ns);
  const symbols::BinaryTable::Binary* binary = nullptr;
  if (event.path == "[vdso]")
    binary = binaries_.InternFromProcess(event.pid, event.path);
  else if (!IsAnonymous(event.path, process->info.executable))
    binary = binaries_.Intern(
        {.pid = event.pid, .user_id = process->info.user_id, .build_id = event.build_id, .path = event.path});
  Map(*process, {event.start, event.start + event.length, event.file_offset, binary}, time_ns);
}

// After an exec: nothing of the former program is left. `now` is what /proc shows.
void ProcessTable::ReplaceProgram(Process& process, proc::ProcessInfo now) {
  process.info.command = std::move(now.command);
  process.info.executable = std::move(now.executable);
  process.info.cgroup = std::move(now.cgroup);
  process.info.user_id = now.user_id;
  process.mappings.Clear();
  process.python.reset();
  process.runs_anonymous_code = false;
  process.jit = std::make_unique<JitCode>(jit_budget_, process.info.user_id);
}

void ProcessTable::On(const perf::CommEvent& event, int64_t time_ns) {
  Process* process = Known(event.pid);
  if (process == nullptr || time_ns < process->known_since_ns) return;
  Process::Thread& thread = process->threads[event.tid];
  thread.name = event.name;
  thread.changed = true;
  // A container runtime moves the new process into the container's cgroup before the exec.
  if (event.exec) {
    // Of a program that has ended already only the name is known; command and file are the former program's.
    proc::ProcessInfo ended = process->info;
    ended.command.clear();
    ended.executable.clear();
    ReplaceProgram(*process, proc::ReadProcess(event.pid).value_or(std::move(ended)));
  }
  if (event.exec || event.tid == event.pid) {
    process->info.name = event.name;
    process->changed = true;
  }
}

void ProcessTable::On(const perf::ForkEvent& event, int64_t time_ns) {
  Process* process = Known(event.pid);
  const bool is_new_process = event.tid == event.pid && event.pid != event.parent_pid;
  if (process != nullptr && is_new_process && process->known_since_ns < time_ns && !IsRunning(*process)) {
    // The exit of the pid's former owner was lost, or late events named it after its end.
    EndThreads(*process, {}, time_ns);
    End(*process, time_ns);
    process = nullptr;
  }
  if (process == nullptr) {
    if (event.pid == event.parent_pid) return;  // a new thread of a process that is not followed
    Process* parent = Known(event.parent_pid);
    if (parent == nullptr && options_.every_process) parent = AddFromProc(event.parent_pid);
    if (parent == nullptr) return;
    process = AddByPid(event.pid, event.parent_pid, time_ns);
    parent->mappings.ForEach([&](const AddressSpace::Mapping& mapping) { Map(*process, mapping, time_ns); });
  }
  if (time_ns < process->known_since_ns) return;
  const auto [thread, added] = process->threads.try_emplace(event.tid);
  if (!added) return;
  // A thread has the name of the thread that created it until it gets another.
  const auto maker = process->threads.find(event.parent_tid);
  thread->second.name = maker == process->threads.end() ? process->info.name : maker->second.name;
  thread->second.started_ns = time_ns + options_.epoch_offset_ns;
  ++process->living_threads;
}

bool ProcessTable::Outlives(const perf::ExitEvent& exit) const {
  // That exit lies between the exec and the first mapping.
  const Process* process = Known(exit.pid);
  return process != nullptr && process->mappings.size() == 0 && !proc::HasThreadEnded(exit.pid, exit.tid);
}

void ProcessTable::On(const perf::ExitEvent& event, int64_t time_ns) {
  Process* process = Known(event.pid);
  if (process == nullptr) return;
  // Threads are listed for a while after their exit event. An exec gives a thread the tid of the main thread
  // that has ended.
  if (time_ns < process->known_since_ns && !proc::HasThreadEnded(event.pid, event.tid)) return;
  const auto thread = process->threads.find(event.tid);
  if (thread != process->threads.end() && !thread->second.exited_ns.has_value()) {
    thread->second.exited_ns = time_ns + options_.epoch_offset_ns;
    thread->second.changed = true;
    if (process->living_threads > 0) --process->living_threads;
  }
  if (process->living_threads == 0) End(*process, time_ns);
}

void ProcessTable::End(Process& process, int64_t time_ns) {
  process.exited_ns = time_ns + options_.epoch_offset_ns;
  process.changed = true;
  ended_.push_back(std::move(by_pid_.extract(process.info.pid).mapped()));
}

std::vector<int32_t> ProcessTable::living() const {
  std::vector<int32_t> pids;
  for (const auto& [pid, process] : by_pid_) pids.push_back(pid);
  return pids;
}

std::vector<int32_t> ProcessTable::Resync(int64_t time_ns) {
  std::vector<int32_t> ended;
  for (const int32_t pid : living()) {
    Process& process = *by_pid_.at(pid);
    Result<proc::ProcessInfo> now = proc::ReadProcess(pid);
    // Another process may have the pid now.
    if (!now.has_value() && now.error().code != ErrorCode::kNotFound) continue;
    if (!now.has_value() || proc::MakeProcessId(options_.host.boot_id, pid, now->start_ticks) != process.id) {
      EndThreads(process, {}, time_ns);
      End(process, time_ns);
      ended.push_back(pid);
      continue;
    }
    // Once its first thread has ended, /proc shows no command, program or mappings.
    if (now->state != 'Z') ResyncProgram(process, *std::move(now));
    ResyncThreads(process, time_ns);
    ResyncMappings(process, time_ns);
  }
  return ended;
}

void ProcessTable::ResyncProgram(Process& process, proc::ProcessInfo now) {
  const bool is_replaced = process.info.executable != now.executable;  // the event of an exec was lost
  process.changed |= is_replaced || process.info.name != now.name || process.info.command != now.command ||
                     process.info.cgroup != now.cgroup;
  process.info.name = std::move(now.name);
  if (is_replaced) return ReplaceProgram(process, std::move(now));
  process.info.command = std::move(now.command);
  process.info.cgroup = std::move(now.cgroup);
}

void ProcessTable::ResyncThreads(Process& process, int64_t time_ns) {
  std::unordered_set<int32_t> living;
  for (proc::ThreadInfo& now : proc::ReadThreads(process.info.pid)) {
    living.insert(now.tid);
    const auto [thread, added] = process.threads.try_emplace(now.tid);
    if (added || thread->second.name != now.name) thread->second.changed = true;
    thread->second.name = std::move(now.name);
    thread->second.exited_ns.reset();
  }
  if (living.empty()) return;  // its exit event is still to come
  EndThreads(process, living, time_ns);
}

// Ends all threads except those in `living`.
void ProcessTable::EndThreads(Process& process, const std::unordered_set<int32_t>& living, int64_t time_ns) {
  for (auto& [tid, thread] : process.threads)
    if (!thread.exited_ns.has_value() && !living.contains(tid)) {
      thread.exited_ns = time_ns + options_.epoch_offset_ns;
      thread.changed = true;
    }
  process.living_threads = living.size();
}

// Empty for a process that has ended.
std::vector<AddressSpace::Mapping> ProcessTable::ReadMappings(const Process& process) {
  auto files = proc::ReadExecutableMappings(process.info.pid).value_or(std::vector<proc::MappedFile>());
  if (files.size() > kMaxMappings / 2) files.resize(kMaxMappings / 2);
  std::vector<AddressSpace::Mapping> mappings;
  for (const proc::MappedFile& file : files)
    mappings.push_back({file.start, file.end, file.file_offset,
                        IsAnonymous(file.path, process.info.executable)
                            ? nullptr
                            : binaries_.InternFromProcess(process.info.pid, file.path, file.outside_root)});
  return mappings;
}

void ProcessTable::ReplaceMappings(Process& process, const std::vector<AddressSpace::Mapping>& now,
                                   int64_t time_ns) {
  process.mappings.Clear();
  for (const AddressSpace::Mapping& mapping : now) Map(process, mapping, time_ns);
}

void ProcessTable::ResyncMappings(Process& process, int64_t time_ns) {
  const std::vector<AddressSpace::Mapping> now = ReadMappings(process);
  std::vector<AddressSpace::Mapping> before;
  process.mappings.ForEach([&before](const AddressSpace::Mapping& mapping) { before.push_back(mapping); });
  if (!now.empty() && now != before) ReplaceMappings(process, now, time_ns);
}

bool ProcessTable::RefreshPython(Process& process) {
  if (process.python_generation == process.mappings.generation()) return true;
  std::unique_ptr<PythonProcess> found;
  bool complete = true;
  process.mappings.ForEach([&](const AddressSpace::Mapping& mapping) {
    if (mapping.binary == nullptr || found != nullptr) return;
    const auto interpreter =
        binaries_.FindPython(mapping.binary, {.pid = process.info.pid, .user_id = process.info.user_id});
    complete &= interpreter.has_value();
    if (interpreter.value_or(nullptr) == nullptr) return;
    const uint64_t bias = mapping.start - mapping.file_offset - (*interpreter)->address_minus_offset;
    found = std::make_unique<PythonProcess>(process.info.pid, *interpreter, bias);
  });
  if (found == nullptr && !complete) return false;
  process.python_generation = process.mappings.generation();
  // What is known of its code objects is kept while the interpreter is the same.
  const bool same = found != nullptr && process.python != nullptr && *found == *process.python;
  if (!same) process.python = std::move(found);
  return true;
}

void ProcessTable::WriteChanges() {
  for (auto& [pid, process] : by_pid_) WriteProcess(*process);
  // Processes that ended in the previous round may have been sampled for the first time since.
  for (const std::unique_ptr<Process>& process : ended_before_) WriteProcess(*process);
  for (const std::unique_ptr<Process>& process : ended_) WriteProcess(*process);
  ended_before_ = std::exchange(ended_, {});
}

void ProcessTable::Rewrite() {
  binaries_written_.clear();
  const auto rewrite = [this](Process& process) {
    for (auto& [tid, thread] : process.threads) thread.changed = true;
    process.changed = true;
    if (options_.every_process)
      process.visible = false;  // until it is sampled again
    else
      MakeVisible(process);
  };
  for (const auto& [pid, process] : by_pid_) rewrite(*process);
  // Samples of their last moments may still come.
  for (const auto* past : {&ended_, &ended_before_})
    for (const std::unique_ptr<Process>& process : *past) rewrite(*process);
}

void ProcessTable::ForgetBinaries() {
  std::erase_if(binaries_written_, [this](const Id128& id) { return binaries_.FindById(id) == nullptr; });
}

void ProcessTable::AddMapped(std::unordered_set<const symbols::BinaryTable::Binary*>& binaries) const {
  const auto add = [&](const Process& process) {
    process.mappings.ForEach([&](const AddressSpace::Mapping& mapping) { binaries.insert(mapping.binary); });
  };
  for (const auto& [pid, process] : by_pid_) add(*process);
  for (const auto* past : {&ended_, &ended_before_})
    for (const std::unique_ptr<Process>& process : *past) add(*process);
}

void ProcessTable::WriteAgain(int32_t pid, const Id128& id) {
  Process* process = Known(pid);
  if (process == nullptr) process = Ended(pid);
  if (process != nullptr && process->id == id && !process->visible) MakeVisible(*process);
}

void ProcessTable::WriteProcess(Process& process) {
  if (!process.visible) return;
  process.changed |= ReadMissingCommand(process);
  if (std::exchange(process.changed, false))
    rows_.processes.Append(
        ProcessRow(process.info, process.id, options_.source, process.started_ns, process.exited_ns));
  for (auto& [tid, thread] : process.threads)
    if (std::exchange(thread.changed, false))
      rows_.threads.Append({.process = process.id,
                            .tid = tid,
                            .name = thread.name,
                            .started_ns = thread.started_ns,
                            .exited_ns = thread.exited_ns});
  std::erase_if(process.threads, [](const auto& entry) { return entry.second.exited_ns.has_value(); });
}

void ProcessTable::WriteMapping(const Process& process, const AddressSpace::Mapping& mapping,
                                int64_t time_ns) {
  if (mapping.binary != nullptr) WriteBinary(*mapping.binary);
  rows_.mappings.Append(
      {.process = process.id,
       .mapped_ns = time_ns + options_.epoch_offset_ns,
       .start_address = static_cast<int64_t>(mapping.start),
       .end_address = static_cast<int64_t>(mapping.end),
       .file_offset = static_cast<int64_t>(mapping.file_offset),
       .binary = mapping.binary == nullptr ? std::nullopt : std::optional(mapping.binary->id)});
}

void ProcessTable::WriteBinary(const symbols::BinaryTable::Binary& binary) {
  if (!binaries_written_.insert(binary.id).second) return;
  rows_.binaries.Append(
      {.binary = binary.id, .build_id = binary.build_id, .path = binary.path, .name = binary.name});
}

}  // namespace gpusonde::agent
