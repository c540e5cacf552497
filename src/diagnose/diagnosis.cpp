// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "diagnose/victim.h"
#include "model/batch_rows.h"

namespace gpusonde::diagnose {
namespace {

// How far back incidents compare; memory grows with it.
constexpr int64_t kMemoryNs = 180 * kNanosPerSecond;

// Of a kernel, or of a pack of them.
template <class Launch>
uint64_t ShapeOf(const Launch& kernel) {
  uint64_t shape = 0;
  for (const int32_t part :
       {kernel.grid_x, kernel.grid_y, kernel.grid_z, kernel.block_x, kernel.block_y, kernel.block_z})
    shape = shape * 1'000'003 + static_cast<uint64_t>(part);
  return shape;
}

// Times from other people's programs; what isn't one is no work.
bool IsTime(int64_t start_ns, int64_t end_ns) {
  return start_ns > 0 && end_ns >= start_ns && end_ns - start_ns < 86'400 * kNanosPerSecond;
}

}  // namespace

Diagnosis::Diagnosis(Options options) : options_(std::move(options)), shared_(std::make_unique<Shared>()) {}
Diagnosis::Diagnosis(Diagnosis&&) noexcept = default;
Diagnosis& Diagnosis::operator=(Diagnosis&&) noexcept = default;
Diagnosis::~Diagnosis() = default;

Diagnosis::Victim& Diagnosis::VictimOf(const Id128& process) {
  auto& victim = victims_[process];
  if (victim == nullptr) victim = std::make_unique<Victim>(process, *shared_, options_.tell);
  return *victim;
}

void Diagnosis::Take(const model::ApiCall& call) { VictimOf(call.process).SawThread(call.tid); }

void Diagnosis::Take(const model::GpuSession& session) { VictimOf(session.process).Take(session); }

void Diagnosis::Take(const model::Incident& incident) { VictimOf(incident.process).Take(incident); }

void Diagnosis::Take(const model::Kernel& kernel) {
  if (!IsTime(kernel.start_ns, kernel.end_ns)) return;
  VictimOf(kernel.process)
      .Take({.kind = Work::Kind::kKernel,
             .name = kernel.name,
             .shape = ShapeOf(kernel),
             .time_ns = kernel.end_ns,
             .length_ns = kernel.end_ns - kernel.start_ns},
            kernel.device);
}

void Diagnosis::Take(const model::KernelPack& pack) {
  Victim& victim = VictimOf(pack.process);
  Work kernel{.kind = Work::Kind::kKernel, .name = pack.name, .shape = ShapeOf(pack)};
  for (size_t i = 0; i < std::min(pack.offsets_ns.size(), pack.durations_ns.size()); ++i) {
    int64_t start_ns = 0;
    if (__builtin_add_overflow(pack.start_ns, pack.offsets_ns[i], &start_ns) ||
        __builtin_add_overflow(start_ns, pack.durations_ns[i], &kernel.time_ns) ||
        !IsTime(start_ns, kernel.time_ns))
      continue;
    kernel.length_ns = pack.durations_ns[i];
    victim.Take(kernel, pack.device);
  }
}

void Diagnosis::Take(const model::Memcpy& copy) {
  if (!IsTime(copy.start_ns, copy.end_ns)) return;
  VictimOf(copy.process)
      .Take({.kind = Work::Kind::kCopy,
             .name = copy.kind,
             .shape = static_cast<uint64_t>(copy.bytes),
             .time_ns = copy.end_ns,
             .length_ns = copy.end_ns - copy.start_ns},
            copy.device);
}

void Diagnosis::Take(const model::Sync& sync) {
  // A stream that waits for another keeps no thread waiting.
  if (!IsTime(sync.start_ns, sync.end_ns) || sync.kind == "stream_wait") return;
  VictimOf(sync.process)
      .Take({.kind = Work::Kind::kSync,
             .name = sync.kind,
             .time_ns = sync.end_ns,
             .length_ns = sync.end_ns - sync.start_ns},
            sync.device);
}

void Diagnosis::Take(const model::Range& range) {
  const auto victim = victims_.find(range.process);
  if (!range.end_ns.has_value() || !IsTime(range.start_ns, *range.end_ns)) return;
  if (victim == victims_.end()) return;  // ranges alone are no steps of a GPU
  victim->second->SawThread(range.tid);
  victim->second->Take({.kind = Work::Kind::kRange,
                        .name = range.name,
                        .time_ns = *range.end_ns,
                        .length_ns = *range.end_ns - range.start_ns},
                       std::nullopt);
}

void Diagnosis::Take(const model::MetricValue& reading) { shared_->host.Take(reading); }

void Diagnosis::Take(const model::Signal& signal) { shared_->host.Take(signal); }

void Diagnosis::Take(const model::Process& process) { shared_->parties.Take(process); }

void Diagnosis::TakeUnobserved(const Id128& process, int64_t from_ns, int64_t to_ns) {
  const auto victim = victims_.find(process);
  if (victim != victims_.end()) victim->second->TakeUnobserved(from_ns, to_ns);
}

void Diagnosis::Take(const model::Batch& batch) {
  const auto take = [&](const auto& table) {
    if (batch.table != table.name()) return;
    for (const auto& row : model::RowsOf(table, batch)) Take(row);
  };
  take(model::kProcesses);
  take(model::kGpuSessions);
  take(model::kApiCalls);
  take(model::kKernels);
  take(model::kKernelPacks);
  take(model::kMemcpys);
  take(model::kSyncs);
  take(model::kRanges);
  take(model::kMetrics);
  take(model::kSignals);
}

void Diagnosis::Advance(int64_t now_ns) {
  std::set<std::string> open;
  for (auto& [process, victim] : victims_) {
    victim->Advance(now_ns, options_.lateness_ns);
    if (victim->is_slow()) open.insert(victim->reports().back().incident.cause);
  }
  for (const model::Warning& warning :
       shared_->forewarner.Advance(shared_->host, open, now_ns, options_.warn))
    shared_->warnings.Append(warning);
  Forget(now_ns - kMemoryNs);
}

void Diagnosis::Finish(int64_t now_ns) {
  for (auto& [process, victim] : victims_) victim->Finish(now_ns);
}

void Diagnosis::Abandon(int64_t now_ns) {
  for (auto& [process, victim] : victims_) victim->Abandon(now_ns);
}

std::vector<model::Batch> Diagnosis::TakeRows() { return shared_->TakeRows(); }

Diagnosis::Found Diagnosis::FoundOf(const Id128& process, const Victim& victim) const {
  const model::Process* row = shared_->parties.Find(process);
  return {.steps = victim.steps(),
          .anchor = victim.anchor(),
          .process_name = row == nullptr ? "" : row->name,
          .pid = row == nullptr ? 0 : row->pid,
          .late = victim.late(),
          .signals_known = victim.signals_known(),
          .waits_by_habit = victim.waits_by_habit()};
}

std::map<Id128, Diagnosis::Found> Diagnosis::FoundSteps() const {
  std::map<Id128, Found> found(old_found_.begin(), old_found_.end());
  for (const auto& [process, victim] : victims_) found.insert_or_assign(process, FoundOf(process, *victim));
  return found;
}

std::vector<Report> Diagnosis::Reports() const {
  std::vector<Report> reports(old_reports_.begin(), old_reports_.end());
  for (const auto& [process, victim] : victims_) {
    const std::vector<Report>& own = victim->reports();
    reports.insert(reports.end(), own.begin(), own.end());
  }
  std::ranges::stable_sort(reports, {}, [](const Report& report) { return report.incident.start_ns; });
  return reports;
}

// Programs come and go for as long as the machine runs.
void Diagnosis::Forget(int64_t before_ns) {
  constexpr size_t kMostKept = 4096;
  std::erase_if(victims_, [&](const auto& entry) {
    const auto& [process, victim] = entry;
    if (victim->ended_ns().value_or(INT64_MAX) >= before_ns) return false;
    if (victim->steps() > 0 || !victim->reports().empty())
      old_found_.emplace_back(process, FoundOf(process, *victim));
    old_reports_.insert(old_reports_.end(), victim->reports().begin(), victim->reports().end());
    shared_->feeders.erase(process);
    shared_->told.erase(process);
    return true;
  });
  if (old_found_.size() > kMostKept)
    old_found_.erase(old_found_.begin(), old_found_.end() - static_cast<ptrdiff_t>(kMostKept));
  if (old_reports_.size() > kMostKept)
    old_reports_.erase(old_reports_.begin(), old_reports_.end() - static_cast<ptrdiff_t>(kMostKept));
  shared_->parties.ForgetEndedBefore(before_ns);
  shared_->host.ForgetBefore(before_ns);
}

std::vector<model::Warning> Diagnosis::Warnings() const {
  return {shared_->forewarner.warnings().begin(), shared_->forewarner.warnings().end()};
}

std::map<Id128, int32_t> Diagnosis::GpuProcesses() const {
  std::map<Id128, int32_t> pids;
  for (const auto& [process, victim] : victims_)
    if (const model::Process* known = shared_->parties.Find(process);
        known != nullptr && !known->exited_ns.has_value())
      pids[process] = known->pid;
  return pids;
}

}  // namespace gpusonde::diagnose
