// SPDX-License-Identifier: Apache-2.0
#include "exporters/prometheus/live_totals.h"

#include <algorithm>
#include <string_view>

#include "base/saturated.h"
#include "model/batch_rows.h"
#include "model/cgroup_owner.h"
#include "model/column.h"
#include "model/enums.h"
#include "model/tables/containers.h"
#include "model/tables/incidents.h"
#include "model/tables/pod_devices.h"
#include "model/tables/processes.h"

namespace gpusonde::exporters::prometheus {
namespace {

using model::Column;

constexpr size_t kMaxEndedIncidents = 1024;
// XID codes are at most three digits; a device that reports ever new ones is broken.
constexpr size_t kMaxXidCodes = 256;
// Their end is not reported: when there are more, those without a known process are forgotten.
constexpr size_t kMaxContainers = 10'000;
constexpr size_t kMaxAllocations = 10'000;
constexpr Id128 kOthers{};

// The index of a kind of copies; unknown for other names.
size_t CopyKind(std::string_view kind) {
  const auto found = std::ranges::find(kCopyKindNames, kind);
  return found == kCopyKindNames.end() ? kCopyKindNames.size() - 1
                                       : static_cast<size_t>(found - kCopyKindNames.begin());
}

bool IsOverhead(model::Metric metric) {
  switch (metric) {
    case model::Metric::kOverheadBudget:
    case model::Metric::kOverheadCost:
    case model::Metric::kOverheadCostHigh:
    case model::Metric::kOverheadCostLow:
    case model::Metric::kOverheadSpent:
      return true;
    default:
      return false;
  }
}

// The columns of an activity that say whose it is.
struct Owner {
  explicit Owner(const model::Batch& batch) : process(batch, "process"), device(batch, "device") {}
  Column process;
  Column device;
};

}  // namespace

void LiveTotals::Sum::Add(const Sum& more) {
  count = AddSaturated(count, more.count);
  bytes = AddSaturated(bytes, more.bytes);
  duration_ns = AddSaturated(duration_ns, more.duration_ns);
}

void LiveTotals::Ingest(std::span<const model::Batch> batches, int64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  for (const model::Batch& batch : batches) IngestTable(batch, now_ns);
  ForgetEnded(now_ns);
}

std::vector<LiveTotals::DeviceReadings> LiveTotals::CurrentReadings(int64_t now_ns) const {
  const std::scoped_lock lock(mutex_);
  std::vector<DeviceReadings> all;
  for (const auto& [id, device] : devices_) {
    if (!device.row.has_value()) continue;
    DeviceReadings& of = all.emplace_back(DeviceReadings{.device = *device.row, .values = {}});
    for (size_t metric = 0; metric < of.values.size(); ++metric)
      if (const auto& reading = device.readings[metric]; reading.has_value() && IsCurrent(*reading, now_ns))
        of.values[metric] = reading->value;
  }
  return all;
}

std::string LiveTotals::host() const {
  const std::scoped_lock lock(mutex_);
  return host_;
}

void LiveTotals::SetPushed(const std::string& signal, const Pushed& pushed) {
  const std::scoped_lock lock(mutex_);
  pushed_[signal] = pushed;
}

void LiveTotals::SetLateRows(const std::string& signal, int64_t rows) {
  const std::scoped_lock lock(mutex_);
  late_rows_[signal] = rows;
}

void LiveTotals::IngestTable(const model::Batch& batch, int64_t now_ns) {
  const std::string_view table = batch.table;
  if (table == "sources")
    host_ = batch.rows == 0 ? host_ : std::string(Column(batch, "host").Text(batch.rows - 1));
  else if (table == "devices")
    IngestDevices(batch);
  else if (table == "processes")
    IngestProcesses(batch, now_ns);
  else if (table == "containers")
    IngestContainers(batch);
  else if (table == "pod_devices")
    IngestPodDevices(batch);
  else if (table == "incidents")
    IngestIncidents(batch);
  else if (table == "kernel_packs")
    IngestPacks(batch);
  else if (table == "memcpys")
    IngestCopies(batch);
  else if (table == "memsets")
    IngestSets(batch);
  else if (table == "kernel_windows")
    IngestLost(batch);
  else if (table == "api_calls")
    IngestCalls(batch);
  else if (table == "samples")
    IngestSamples(batch);
  else if (table == "metrics")
    IngestMetrics(batch, now_ns);
  else if (table == "drops")
    IngestDrops(batch);
}

void LiveTotals::IngestDevices(const model::Batch& batch) {
  for (const model::Device& row : model::RowsOf(model::kDevices, batch)) {
    const Id128 device = Bounded(row.device);
    if (device != kOthers) devices_[device].row = row;
  }
}

// A pid belongs to one process at a time, so that no two have the same labels.
void LiveTotals::IngestProcesses(const model::Batch& batch, int64_t now_ns) {
  for (const model::Process& row : model::RowsOf(model::kProcesses, batch)) {
    const auto [holder, is_new] = by_pid_.try_emplace(row.pid, row.process);
    if (!is_new && holder->second != row.process) {
      if (row.exited_ns.has_value()) continue;  // ends come late: the pid has a new holder, and this one went
      Forget(holder->second);
      holder->second = row.process;
    }
    names_[row.process] = {row.pid, row.name, model::OwnerOfCgroup(row.cgroup).container};
    if (row.exited_ns.has_value()) ended_.push_back({row.process, now_ns});
  }
}

void LiveTotals::IngestContainers(const model::Batch& batch) {
  for (model::Container& row : model::RowsOf(model::kContainers, batch)) {
    if (row.pod.empty()) continue;
    if (containers_.size() >= kMaxContainers) ForgetContainers();
    containers_[std::move(row.container)] = {std::move(row.pod_namespace), std::move(row.pod),
                                             std::move(row.name)};
  }
}

void LiveTotals::ForgetContainers() {
  std::unordered_set<std::string_view> used;
  for (const auto& [process, name] : names_) used.insert(name.container);
  std::erase_if(containers_, [&](const auto& entry) { return !used.contains(entry.first); });
  if (containers_.size() >= kMaxContainers) containers_.clear();
}

void LiveTotals::IngestPodDevices(const model::Batch& batch) {
  for (model::PodDevice& row : model::RowsOf(model::kPodDevices, batch)) {
    allocations_.erase(row.allocation);
    if (row.end_ns.has_value() || !row.device.has_value() || allocations_.size() >= kMaxAllocations) continue;
    allocations_[row.allocation] = {
        *row.device, {std::move(row.pod_namespace), std::move(row.pod), std::move(row.container)}};
  }
}

// Work of a process may be reported after its end, so names live as long as series.
void LiveTotals::ForgetEnded(int64_t now_ns) {
  // Nothing reports the end of processes that NVML alone has seen.
  std::erase_if(processes_, [now_ns](const auto& entry) {
    const Process& process = entry.second;
    return entry.first != kOthers && process.work.empty() && process.launches == 0 && process.cpu_ns == 0 &&
           std::ranges::none_of(process.memory,
                                [now_ns](const auto& of) { return IsCurrent(of.second, now_ns); });
  });
  while (!ended_.empty() && now_ns - ended_.front().ended_ns > kKeepExitedNs) {
    const Id128 process = ended_.front().process;
    ended_.pop_front();
    const auto name = names_.find(process);
    if (name == names_.end()) continue;  // its pid went to another process
    by_pid_.erase(name->second.pid);
    Forget(process);
  }
}

void LiveTotals::Forget(const Id128& process) {
  processes_.erase(process);
  omitted_.erase(process);
  names_.erase(process);
}

void LiveTotals::IngestIncidents(const model::Batch& batch) {
  for (const model::Incident& row : model::RowsOf(model::kIncidents, batch)) {
    if (!row.end_ns.has_value()) {
      open_incidents_.insert(row.incident);
      continue;
    }
    open_incidents_.erase(row.incident);
    if (std::ranges::find(ended_incidents_, row.incident) != ended_incidents_.end()) continue;
    ended_incidents_.push_back(row.incident);
    if (ended_incidents_.size() > kMaxEndedIncidents) ended_incidents_.pop_front();
    ++incidents_[row.cause];
  }
}

void LiveTotals::IngestPacks(const model::Batch& batch) {
  const Owner owner(batch);
  const Column count(batch, "count");
  const Column duration(batch, "duration_ns");
  for (size_t row = 0; row < batch.rows; ++row)
    for (Work* work : WorkOf(owner.process.At<Id128>(row), owner.device.At<Id128>(row)))
      work->kernels.Add({.count = count.At<int64_t>(row), .duration_ns = duration.At<int64_t>(row)});
}

void LiveTotals::IngestCopies(const model::Batch& batch) {
  const Owner owner(batch);
  const Column kind(batch, "kind");
  const Column bytes(batch, "bytes");
  const Column start(batch, "start_ns");
  const Column end(batch, "end_ns");
  for (size_t row = 0; row < batch.rows; ++row)
    for (Work* work : WorkOf(owner.process.At<Id128>(row), owner.device.At<Id128>(row)))
      work->copies[CopyKind(kind.Text(row))].Add(
          {.count = 1,
           .bytes = std::max<int64_t>(bytes.At<int64_t>(row), 0),
           .duration_ns = std::max<int64_t>(end.At<int64_t>(row) - start.At<int64_t>(row), 0)});
}

void LiveTotals::IngestSets(const model::Batch& batch) {
  const Owner owner(batch);
  const Column bytes(batch, "bytes");
  const Column start(batch, "start_ns");
  const Column end(batch, "end_ns");
  for (size_t row = 0; row < batch.rows; ++row)
    for (Work* work : WorkOf(owner.process.At<Id128>(row), owner.device.At<Id128>(row)))
      work->sets.Add({.count = 1,
                      .bytes = std::max<int64_t>(bytes.At<int64_t>(row), 0),
                      .duration_ns = std::max<int64_t>(end.At<int64_t>(row) - start.At<int64_t>(row), 0)});
}

// Sums of work whose records were lost, which an agent writes as rows of a window. Their bytes are unknown.
void LiveTotals::IngestLost(const model::Batch& batch) {
  constexpr std::string_view kCopy = "[memcpy ";
  const Owner owner(batch);
  const Column part(batch, "part");
  const Column name(batch, "name");
  const Column count(batch, "count");
  const Column duration(batch, "duration_ns");
  for (size_t row = 0; row < batch.rows; ++row) {
    if (part.Text(row) != model::EnumNames<model::WorkPart>::Name(model::WorkPart::kLost)) continue;
    const Sum lost{.count = count.At<int64_t>(row), .duration_ns = duration.At<int64_t>(row)};
    std::string_view of = name.Text(row);
    for (Work* work : WorkOf(owner.process.At<Id128>(row), owner.device.At<Id128>(row)))
      if (of == "[memset]")
        work->sets.Add(lost);
      else if (of.starts_with(kCopy) && of.ends_with(']'))
        work->copies[CopyKind(of.substr(kCopy.size(), of.size() - kCopy.size() - 1))].Add(lost);
      else
        work->kernels.Add(lost);
  }
}

void LiveTotals::IngestCalls(const model::Batch& batch) {
  const Column process(batch, "process");
  const Column result(batch, "result");
  const Column probability(batch, "probability");
  for (size_t row = 0; row < batch.rows; ++row)
    if (result.At<int32_t>(row) == 0 && probability.At<double>(row) > 0)
      OfUser(process.At<Id128>(row)).launches += 1 / probability.At<double>(row);
}

void LiveTotals::IngestSamples(const model::Batch& batch) {
  constexpr std::string_view kOnCpu = model::EnumNames<model::ThreadState>::Name(model::ThreadState::kOnCpu);
  const Column process(batch, "process");
  const Column state(batch, "state");
  const Column weight(batch, "weight_ns");
  samples_ += static_cast<int64_t>(batch.rows);
  for (size_t row = 0; row < batch.rows; ++row) {
    if (state.Text(row) != kOnCpu) continue;
    const auto series = processes_.find(process.At<Id128>(row));
    Process& whose = series == processes_.end() ? processes_[kOthers] : series->second;
    whose.cpu_ns = AddSaturated(whose.cpu_ns, weight.At<int64_t>(row));
  }
}

void LiveTotals::IngestMetrics(const model::Batch& batch, int64_t now_ns) {
  const Owner owner(batch);
  const Column metric(batch, "metric");
  const Column value(batch, "value");
  for (size_t row = 0; row < batch.rows; ++row) {
    const std::optional<model::Metric> known = model::FindMetric(metric.Text(row));
    if (!known.has_value()) continue;
    const Reading reading{value.At<double>(row), now_ns};
    if (IsOverhead(*known)) {
      if (!owner.process.Has(row)) continue;
      Process& process = OfUser(owner.process.At<Id128>(row));
      if (&process != &processes_[kOthers]) process.overhead[*known] = reading;
      continue;
    }
    if (!owner.device.Has(row)) continue;
    const Id128 id = Bounded(owner.device.At<Id128>(row));
    if (owner.process.Has(row)) {
      if (*known != model::Metric::kGpuProcessMemoryUsed) continue;
      // A gauge of the others would be that of any one of them.
      Process& process = OfUser(owner.process.At<Id128>(row));
      if (&process != &processes_[kOthers] && id != kOthers) process.memory[id] = reading;
      continue;
    }
    Device& device = devices_[id];
    if (*known == model::Metric::kGpuXid) {
      device.last_xid = static_cast<int64_t>(reading.value);
      if (device.xids.size() < kMaxXidCodes || device.xids.contains(device.last_xid))
        ++device.xids[device.last_xid];
    } else if (id != kOthers) {
      device.readings[static_cast<size_t>(*known)] = reading;
    }
  }
}

void LiveTotals::IngestDrops(const model::Batch& batch) {
  const Column reason(batch, "reason");
  const Column count(batch, "count");
  for (size_t row = 0; row < batch.rows; ++row) {
    const auto known = std::ranges::find(model::kDropReasons, reason.Text(row), &model::DropInfo::name);
    if (known == model::kDropReasons.end()) continue;
    int64_t& total = drops_[static_cast<size_t>(known - model::kDropReasons.begin())];
    total = AddSaturated(total, count.At<int64_t>(row));
  }
}

Id128 LiveTotals::Bounded(const Id128& device) {
  if (devices_.contains(device)) return device;
  if (devices_.size() - (devices_.contains(kOthers) ? 1 : 0) >= kMaxDevices) return kOthers;
  devices_.try_emplace(device);
  return device;
}

LiveTotals::Process& LiveTotals::OfUser(const Id128& process) {
  if (const auto series = processes_.find(process); series != processes_.end()) return series->second;
  const auto name = names_.find(process);
  Process& others = processes_[kOthers];
  if (name == names_.end()) return others;
  if (processes_.size() > kMaxProcesses) {
    omitted_.insert(process);
    return others;
  }
  omitted_.erase(process);
  return processes_
      .emplace(process, Process{.pid = std::to_string(name->second.pid),
                                .command = name->second.command,
                                .container = name->second.container})
      .first->second;
}

std::array<LiveTotals::Work*, 2> LiveTotals::WorkOf(const Id128& process, const Id128& device) {
  const Id128 bounded = Bounded(device);
  return {&devices_[bounded].work, &OfUser(process).work[bounded]};
}

}  // namespace gpusonde::exporters::prometheus
