// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_programs.h"

#include <span>
#include <variant>

#include "base/log.h"
#include "sources/cupti/inject_library.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {

Result<GpuChannel> GpuPrograms::MakeChannel() {
  const std::optional<std::string> library = cupti::FindInjectLibrary();
  if (!events_.has_value() || !library.has_value()) return GpuChannel{};
  ASSIGN_OR_RETURN(cupti::GpuEvents::Inheritance inheritance, events_->MakeSocket());
  GpuChannel channel{.socket = std::move(inheritance.fd), .environment = cupti::InjectEnvironment(*library)};
  channel.environment.push_back(std::move(inheritance.environment));
  return channel;
}

Status GpuPrograms::AttachBeforeExec(int32_t pid) {
  return events_.has_value() ? events_->AttachBeforeExec(pid) : Status();
}

void GpuPrograms::AttachMapped(int32_t pid) {
  if (!events_.has_value()) return;
  const Result<std::vector<proc::MappedFile>> mapped = proc::ReadExecutableMappings(pid);
  if (!mapped.has_value()) return;  // it has ended
  for (const proc::MappedFile& file : *mapped) Attach(pid, file.path);
}

// Attaches to a process that has mapped this file if the file is our injected library.
void GpuPrograms::Attach(int32_t pid, const std::string& path) {
  if (!cupti::LooksLikeInjectLibrary(path)) return;
  const Result<bool> attached = events_->Consider(pid, path);
  if (!attached.has_value() && attached.error().code != ErrorCode::kNotFound)
    LogWarn("GPU work of process {} is not profiled: {}", pid, attached.error().message);
}

void GpuPrograms::Apply(const perf::SidebandEvent& event) {
  if (const auto* exit = std::get_if<perf::ExitEvent>(&event.what); exit != nullptr)
    if (!processes_.Runs(exit->pid)) End(exit->pid);
  if (const auto* fork = std::get_if<perf::ForkEvent>(&event.what); fork != nullptr) {
    const auto former = reporting_.find(fork->pid);
    if (former != reporting_.end() && processes_.Find(fork->pid) != former->second) End(fork->pid);
  }
  if (!events_.has_value()) return;
  const auto* comm = std::get_if<perf::CommEvent>(&event.what);
  if (comm != nullptr && !with_stacks_ && comm->name == cupti::kLibraryThread && processes_.Runs(comm->pid) &&
      !events_->HasSocket(comm->pid))
    drops_.Add(model::DropReason::kGpuProgramUnrecorded);
  const auto* map = std::get_if<perf::MapEvent>(&event.what);
  if (map != nullptr && processes_.Runs(map->pid)) Attach(map->pid, map->path);
}

bool GpuPrograms::Ingest(const cupti::Event& event) {
  const std::optional<int64_t> stack_ns = event.stack_ns();
  work_arrived_ |= !stack_ns.has_value();
  if (std::holds_alternative<cupti::SessionBegin>(event.what)) beginning_.push_back(event.pid);
  if (stack_ns.has_value() && event.stack_taken) {
    const bool is_of_future = *stack_ns > MonotonicNow();
    if (is_of_future) drops_.Add(model::DropReason::kGpuMalformed);
    return is_of_future;
  }
  if (event.pid != last_pid_)
    reporting_[event.pid] = last_process_ = processes_.FindSampled(event.pid, now_ns_).id;
  last_pid_ = event.pid;
  rows_.Ingest(event, last_process_, std::nullopt);
  return true;
}

void GpuPrograms::EnableStacks() {
  for (const int32_t pid : std::exchange(beginning_, {})) {
    const Status enabled = events_->EnableLaunchStacks(pid);
    if (!enabled.has_value() && enabled.error().code != ErrorCode::kNotFound)
      LogWarn("no call stacks for the GPU work of process {}: {}", pid, enabled.error().message);
  }
}

// Also one that reported nothing: the source may hold its records for lack of names, or know it from batches
// without records. A process that the table doesn't know may still run: this can be the end of a thread.
void GpuPrograms::End(int32_t pid) {
  if (auto process = reporting_.extract(pid); !process.empty())
    ended_.emplace_back(pid, process.mapped());
  else if (const std::optional<Id128> known = processes_.Find(pid); events_.has_value() && known.has_value())
    ended_.emplace_back(pid, *known);
}

void GpuPrograms::Finish(size_t count) {
  for (const auto& [pid, process] : std::span(ended_).first(count)) {
    rows_.Finish(process);
    if (events_.has_value() && !processes_.Runs(pid)) events_->Forget(pid);
  }
  ended_.erase(ended_.begin(), ended_.begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace gpusonde::agent
