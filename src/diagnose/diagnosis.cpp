// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "diagnose/workload.h"
#include "model/batch_rows.h"
#include "model/span_name.h"

namespace gpusonde::diagnose {
namespace {

// Hashes grid and block of a kernel, or of a pack of kernels.
template <class Launch>
uint64_t ShapeOf(const Launch& kernel) {
  uint64_t shape = 0;
  for (const int32_t part :
       {kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z})
    shape = shape * 1'000'003 + static_cast<uint64_t>(part);
  return shape;
}

// Times come from other programs; work with implausible ones is dropped.
bool IsTime(int64_t start_ns, int64_t end_ns) {
  return start_ns > 0 && end_ns >= start_ns && end_ns - start_ns < 86'400 * kNanosPerSecond;
}

}  // namespace

Diagnosis::Diagnosis(Options options) : options_(std::move(options)), shared_(std::make_unique<Shared>()) {}
Diagnosis::Diagnosis(Diagnosis&&) noexcept = default;
Diagnosis& Diagnosis::operator=(Diagnosis&&) noexcept = default;
Diagnosis::~Diagnosis() = default;

Diagnosis::Workload& Diagnosis::WorkloadOf(const Id128& process) {
  auto& workload = workloads_[process];
  if (workload == nullptr) workload = std::make_unique<Workload>(process, *shared_, options_);
  return *workload;
}

void Diagnosis::Ingest(const model::ApiCall& call) {
  WorkloadOf(call.process).CountThread(call.tid, call.start_ns);
}

void Diagnosis::Ingest(const model::GpuSession& session) { WorkloadOf(session.process).Ingest(session); }

void Diagnosis::Ingest(const model::Incident& incident) { WorkloadOf(incident.process).Ingest(incident); }

void Diagnosis::Ingest(const model::Kernel& kernel) {
  if (!IsTime(kernel.start_ns, kernel.end_ns)) return;
  WorkloadOf(kernel.process)
      .Ingest({.kind = Work::Kind::kKernel,
               .name = kernel.name,
               .shape = ShapeOf(kernel),
               .time_ns = kernel.end_ns,
               .length_ns = kernel.end_ns - kernel.start_ns},
              kernel.device);
}

void Diagnosis::Ingest(const model::KernelPack& pack) {
  std::vector<WorkTime> times;
  times.reserve(pack.offsets_ns.size());
  for (size_t i = 0; i < std::min(pack.offsets_ns.size(), pack.durations_ns.size()); ++i) {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    if (!__builtin_add_overflow(pack.start_ns, pack.offsets_ns[i], &start_ns) &&
        !__builtin_add_overflow(start_ns, pack.durations_ns[i], &end_ns) && IsTime(start_ns, end_ns))
      times.push_back({end_ns, pack.durations_ns[i]});
  }
  WorkloadOf(pack.process)
      .Ingest({.kind = Work::Kind::kKernel, .name = pack.name, .shape = ShapeOf(pack)}, times, pack.device);
}

void Diagnosis::Ingest(const model::Memcpy& copy) {
  if (!IsTime(copy.start_ns, copy.end_ns)) return;
  WorkloadOf(copy.process)
      .Ingest({.kind = Work::Kind::kCopy,
               .name = copy.kind,
               .shape = static_cast<uint64_t>(copy.bytes),
               .time_ns = copy.end_ns,
               .length_ns = copy.end_ns - copy.start_ns},
              copy.device);
}

void Diagnosis::Ingest(const model::Sync& sync) {
  // A stream that waits for another one doesn't block a thread.
  if (!IsTime(sync.start_ns, sync.end_ns) || sync.kind == "stream_wait") return;
  WorkloadOf(sync.process)
      .Ingest({.kind = Work::Kind::kSync,
               .name = sync.kind,
               .time_ns = sync.end_ns,
               .length_ns = sync.end_ns - sync.start_ns},
              sync.device);
}

void Diagnosis::Ingest(const model::Range& range) {
  const auto workload = workloads_.find(range.process);
  if (!range.end_ns.has_value() || !IsTime(range.start_ns, *range.end_ns)) return;
  if (workload == workloads_.end()) return;  // ranges alone don't make a GPU workload
  workload->second->CountThread(range.tid, range.start_ns);
  // Operators repeat within a step, also those that PyTorch marks by NVTX.
  if (range.kind == "operator" || model::WithoutArguments(range.name) != range.name) return;
  workload->second->Ingest({.kind = Work::Kind::kRange,
                            .name = range.name,
                            .time_ns = *range.end_ns,
                            .length_ns = *range.end_ns - range.start_ns},
                           std::nullopt);
}

void Diagnosis::Ingest(const model::MetricValue& reading) { shared_->host.Ingest(reading); }

void Diagnosis::Ingest(const model::Signal& signal) { shared_->host.Ingest(signal); }

void Diagnosis::Ingest(const model::Collective& collective) { shared_->collectives.Ingest(collective); }

void Diagnosis::Ingest(const model::Communicator& communicator) { shared_->collectives.Ingest(communicator); }

void Diagnosis::Ingest(const model::Container& container) { shared_->actors.NameContainer(container); }

void Diagnosis::Ingest(const model::Process& process) { shared_->actors.Ingest(process); }

void Diagnosis::MarkUnobserved(const Id128& process, int64_t from_ns, int64_t to_ns) {
  const auto workload = workloads_.find(process);
  if (workload != workloads_.end()) workload->second->MarkUnobserved(from_ns, to_ns);
}

void Diagnosis::Ingest(const model::Batch& batch) {
  const auto ingest = [&](const auto& table) {
    if (batch.table != table.name()) return;
    for (const auto& row : model::RowsOf(table, batch)) Ingest(row);
  };
  ingest(model::kProcesses);
  ingest(model::kContainers);
  ingest(model::kGpuSessions);
  ingest(model::kApiCalls);
  ingest(model::kKernels);
  ingest(model::kKernelPacks);
  ingest(model::kMemcpys);
  ingest(model::kSyncs);
  ingest(model::kRanges);
  ingest(model::kCommunicators);
  ingest(model::kCollectives);
  ingest(model::kMetrics);
  ingest(model::kSignals);
}

void Diagnosis::Advance(int64_t now_ns) {
  std::set<CauseId> open;
  for (auto& [process, workload] : workloads_) {
    workload->Advance(now_ns, options_.allowed_lateness_ns);
    if (!workload->is_slow()) continue;
    if (const auto cause = FindCause(workload->reports().back().incident.cause); cause.has_value())
      open.insert(*cause);
  }
  shared_->collectives.Advance(
      now_ns, {.host = shared_->host, .actors = shared_->actors, .last_reports = shared_->last_reports},
      [this](const Report& report) { EmitCollective(report); });
  for (const model::Warning& warning :
       shared_->forewarner.Advance(shared_->host, open, now_ns, options_.warn))
    shared_->warnings.Append(warning);
  Forget(now_ns - kRetentionNs);
}

void Diagnosis::Finish(int64_t now_ns) {
  for (auto& [process, workload] : workloads_) workload->Finish(now_ns);
}

void Diagnosis::Abandon(int64_t now_ns) {
  for (auto& [process, workload] : workloads_) workload->Abandon(now_ns);
  shared_->collectives.Abandon(now_ns, [this](const Report& report) { EmitCollective(report); });
  for (const model::Warning& warning : shared_->forewarner.Abandon()) shared_->warnings.Append(warning);
}

// A rank's own incident, which says why it is slow, stays the last report of its process.
void Diagnosis::EmitCollective(const Report& report) {
  shared_->incidents.Append(report.incident);
  for (const model::Evidence& each : report.evidence) shared_->evidence.Append(each);
  options_.report(report);
}

std::vector<model::Batch> Diagnosis::DrainRows() { return shared_->DrainRows(); }

Diagnosis::Found Diagnosis::FoundOf(const Id128& process, const Workload& workload) const {
  const model::Process* row = shared_->actors.Find(process);
  return {.steps = workload.steps(),
          .anchor = workload.anchor(),
          .process_name = row == nullptr ? "" : row->name,
          .pid = row == nullptr ? 0 : row->pid,
          .late = workload.late(),
          .signals_known = workload.signals_known(),
          .waits_by_habit = workload.waits_by_habit(),
          .usual = workload.Usual(),
          .kinds = workload.kinds().Common()};
}

std::map<Id128, Diagnosis::Found> Diagnosis::FoundSteps() const {
  std::map<Id128, Found> found(old_found_.begin(), old_found_.end());
  for (const auto& [process, workload] : workloads_)
    found.insert_or_assign(process, FoundOf(process, *workload));
  return found;
}

std::vector<Report> Diagnosis::Reports() const {
  std::vector<Report> reports(old_reports_.begin(), old_reports_.end());
  for (const auto& [process, workload] : workloads_) {
    std::ranges::copy_if(workload->reports(), std::back_inserter(reports), &Report::is_notable);
  }
  const std::vector<Report>& collective = shared_->collectives.reports();
  reports.insert(reports.end(), collective.begin(), collective.end());
  std::ranges::stable_sort(reports, {}, [](const Report& report) { return report.incident.start_ns; });
  return reports;
}

// Moves programs that ended before this time to a bounded history: the agent may run for months.
void Diagnosis::Forget(int64_t before_ns) {
  constexpr size_t kMaxKept = 4096;
  std::erase_if(workloads_, [&](const auto& entry) {
    const auto& [process, workload] = entry;
    if (workload->ended_ns().value_or(INT64_MAX) >= before_ns) return false;
    if (workload->steps() > 0 || !workload->reports().empty())
      old_found_.emplace_back(process, FoundOf(process, *workload));
    std::ranges::copy_if(workload->reports(), std::back_inserter(old_reports_), &Report::is_notable);
    shared_->launch_threads.erase(process);
    shared_->last_reports.erase(process);
    return true;
  });
  if (old_found_.size() > kMaxKept)
    old_found_.erase(old_found_.begin(), old_found_.end() - static_cast<ptrdiff_t>(kMaxKept));
  if (old_reports_.size() > kMaxKept)
    old_reports_.erase(old_reports_.begin(), old_reports_.end() - static_cast<ptrdiff_t>(kMaxKept));
  shared_->actors.ForgetEndedBefore(before_ns);
  shared_->host.ForgetBefore(before_ns);
}

std::vector<model::Warning> Diagnosis::Warnings() const {
  return {shared_->forewarner.warnings().begin(), shared_->forewarner.warnings().end()};
}

std::map<Id128, int32_t> Diagnosis::GpuProcesses() const {
  std::map<Id128, int32_t> pids;
  const auto add = [&](const Id128& process) {
    if (const model::Process* known = shared_->actors.Find(process);
        known != nullptr && !known->exited_ns.has_value())
      pids[process] = known->pid;
  };
  for (const auto& [process, workload] : workloads_) add(process);
  for (const Id128& process : shared_->collectives.Processes()) add(process);
  return pids;
}

}  // namespace gpusonde::diagnose
