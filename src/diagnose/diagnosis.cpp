// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "diagnose/process_loops.h"
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
  return start_ns > 0 && end_ns >= start_ns && end_ns - start_ns < kNanosPerDay;
}

template <class Row>
Stream StreamOf(const Row& row) {
  return {.device = row.device, .context = row.context, .stream = row.stream};
}

// Of a row of one piece of work.
template <class Row>
Origin OriginOf(const Row& row) {
  return {.on = StreamOf(row),
          .session = row.session,
          .correlations = {&row.correlation, 1},
          .tid = std::nullopt};
}

}  // namespace

Diagnosis::Diagnosis(Options options) : options_(std::move(options)), shared_(std::make_unique<Shared>()) {}
Diagnosis::Diagnosis(Diagnosis&&) noexcept = default;
Diagnosis& Diagnosis::operator=(Diagnosis&&) noexcept = default;
Diagnosis::~Diagnosis() = default;

Diagnosis::ProcessLoops& Diagnosis::LoopsOf(const Id128& process) {
  auto& loops = processes_[process];
  if (loops == nullptr) loops = std::make_unique<ProcessLoops>(process, *shared_, options_);
  return *loops;
}

void Diagnosis::Ingest(const model::ApiCall& call) { LoopsOf(call.process).Ingest(call); }

void Diagnosis::Ingest(const model::GpuSession& session) { LoopsOf(session.process).Ingest(session); }

void Diagnosis::Ingest(const model::Incident& incident) { LoopsOf(incident.process).Ingest(incident); }

void Diagnosis::Ingest(const model::Kernel& kernel) {
  if (!IsTime(kernel.start_ns, kernel.end_ns)) return;
  const WorkTime time{kernel.end_ns, kernel.end_ns - kernel.start_ns};
  LoopsOf(kernel.process)
      .Ingest({.kind = Work::Kind::kKernel, .name = kernel.name, .shape = ShapeOf(kernel)}, {&time, 1},
              OriginOf(kernel));
}

void Diagnosis::Ingest(const model::KernelPack& pack) {
  std::vector<WorkTime> times;
  std::vector<int64_t> correlations;
  times.reserve(pack.offsets_ns.size());
  correlations.reserve(pack.offsets_ns.size());
  for (size_t i = 0; i < std::min(pack.offsets_ns.size(), pack.durations_ns.size()); ++i) {
    int64_t start_ns = 0;
    int64_t end_ns = 0;
    if (!__builtin_add_overflow(pack.start_ns, pack.offsets_ns[i], &start_ns) &&
        !__builtin_add_overflow(start_ns, pack.durations_ns[i], &end_ns) && IsTime(start_ns, end_ns)) {
      times.push_back({end_ns, pack.durations_ns[i]});
      correlations.push_back(i < pack.correlations.size() ? pack.correlations[i] : -1);
    }
  }
  LoopsOf(pack.process)
      .Ingest(
          {.kind = Work::Kind::kKernel, .name = pack.name, .shape = ShapeOf(pack)}, times,
          {.on = StreamOf(pack), .session = pack.session, .correlations = correlations, .tid = std::nullopt});
}

void Diagnosis::Ingest(const model::Memcpy& copy) {
  if (!IsTime(copy.start_ns, copy.end_ns)) return;
  const WorkTime time{copy.end_ns, copy.end_ns - copy.start_ns};
  LoopsOf(copy.process)
      .Ingest({.kind = Work::Kind::kCopy, .name = copy.kind, .shape = static_cast<uint64_t>(copy.bytes)},
              {&time, 1}, OriginOf(copy));
}

void Diagnosis::Ingest(const model::Sync& sync) {
  // A stream that waits for another one doesn't block a thread.
  if (!IsTime(sync.start_ns, sync.end_ns) || sync.kind == "stream_wait") return;
  const WorkTime time{sync.end_ns, sync.end_ns - sync.start_ns};
  Origin from = OriginOf(sync);
  if (sync.kind != "stream") from.on.stream = -1;
  LoopsOf(sync.process).Ingest({.kind = Work::Kind::kSync, .name = sync.kind}, {&time, 1}, from);
}

void Diagnosis::Ingest(const model::Range& range) {
  const auto loops = processes_.find(range.process);
  if (!range.end_ns.has_value() || !IsTime(range.start_ns, *range.end_ns)) return;
  if (loops == processes_.end()) return;  // ranges alone don't make a GPU workload
  loops->second->CountThread(range.tid, range.start_ns);
  // Operators repeat within a step, also those that PyTorch marks by NVTX.
  if (range.kind == "operator" || model::WithoutArguments(range.name) != range.name) return;
  const WorkTime time{*range.end_ns, *range.end_ns - range.start_ns};
  loops->second->Ingest({.kind = Work::Kind::kRange, .name = range.name}, {&time, 1}, {.tid = range.tid});
}

void Diagnosis::Ingest(const model::MetricValue& reading) { shared_->host.Ingest(reading); }

void Diagnosis::Ingest(const model::Signal& signal) { shared_->host.Ingest(signal); }

void Diagnosis::Ingest(const model::Collective& collective) { shared_->collectives.Ingest(collective); }

void Diagnosis::Ingest(const model::Communicator& communicator) { shared_->collectives.Ingest(communicator); }

void Diagnosis::Ingest(const model::Container& container) { shared_->actors.NameContainer(container); }

void Diagnosis::Ingest(const model::Process& process) { shared_->actors.Ingest(process); }

void Diagnosis::MarkUnobserved(const Id128& process, int64_t from_ns, int64_t to_ns) {
  const auto loops = processes_.find(process);
  if (loops != processes_.end()) loops->second->MarkUnobserved(from_ns, to_ns);
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
  for (auto& [process, loops] : processes_) {
    loops->Advance(now_ns, options_.allowed_lateness_ns);
    for (const auto& loop : loops->loops()) {
      if (!loop->is_slow()) continue;
      if (const auto cause = FindCause(loop->reports().back().incident.cause); cause.has_value())
        open.insert(*cause);
    }
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
  for (auto& [process, loops] : processes_) loops->Finish(now_ns);
}

void Diagnosis::Abandon(int64_t now_ns) {
  for (auto& [process, loops] : processes_) loops->Abandon(now_ns);
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

Diagnosis::Found Diagnosis::FoundOf(const Id128& process, const Workload& loop) const {
  const model::Process* row = shared_->actors.Find(process);
  return {.process = process,
          .tid = loop.tid(),
          .steps = loop.steps(),
          .anchor = loop.anchor(),
          .process_name = row == nullptr ? "" : row->name,
          .pid = row == nullptr ? 0 : row->pid,
          .late = loop.late(),
          .signals_known = loop.signals_known(),
          .waits_by_habit = loop.waits_by_habit(),
          .usual = loop.Usual(),
          .kinds = loop.kinds().Common()};
}

std::vector<Diagnosis::Found> Diagnosis::FoundSteps() const {
  std::vector<Found> found(old_found_.begin(), old_found_.end());
  for (const auto& [process, loops] : processes_)
    for (const auto& loop : loops->loops()) found.push_back(FoundOf(process, *loop));
  std::ranges::stable_sort(found, {}, [](const Found& each) { return std::pair(each.process, each.tid); });
  return found;
}

std::vector<Report> Diagnosis::Reports() const {
  std::vector<Report> reports(old_reports_.begin(), old_reports_.end());
  for (const auto& [process, loops] : processes_)
    for (const auto& loop : loops->loops())
      std::ranges::copy_if(loop->reports(), std::back_inserter(reports), &Report::is_notable);
  const std::vector<Report>& collective = shared_->collectives.reports();
  reports.insert(reports.end(), collective.begin(), collective.end());
  std::ranges::stable_sort(reports, {}, [](const Report& report) { return report.incident.start_ns; });
  return reports;
}

// Moves programs that ended before this time to a bounded history: the agent may run for months.
void Diagnosis::Forget(int64_t before_ns) {
  constexpr size_t kMaxKept = 4096;
  std::erase_if(processes_, [&](const auto& entry) {
    const auto& [process, loops] = entry;
    if (loops->ended_ns().value_or(INT64_MAX) >= before_ns) return false;
    for (const auto& loop : loops->loops()) {
      if (loop->steps() > 0 || !loop->reports().empty()) old_found_.push_back(FoundOf(process, *loop));
      std::ranges::copy_if(loop->reports(), std::back_inserter(old_reports_), &Report::is_notable);
    }
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
  for (const auto& [process, loops] : processes_) add(process);
  for (const Id128& process : shared_->collectives.Processes()) add(process);
  return pids;
}

}  // namespace gpusonde::diagnose
