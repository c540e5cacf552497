// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_monitor.h"

#include <fmt/format.h>

#include <utility>

#include "agent/process_row.h"
#include "base/log.h"
#include "base/time.h"
#include "sources/nvml/poller.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {
namespace {

void LogXid(const nvml::Device& device, int64_t code) {
  const std::string_view meaning = model::XidMeaning(code);
  LogWarn("{}: XID {}{}{}", nvml::Describe(device), code, meaning.empty() ? "" : ": ", meaning);
}

}  // namespace

GpuMonitor::GpuMonitor(nvml::Monitor monitor, std::shared_ptr<DeviceTable> devices, size_t max_processes)
    : monitor_(std::move(monitor)),
      device_table_(std::move(devices)),
      max_processes_(max_processes),
      boot_id_(proc::ReadHost().boot_id) {}

std::optional<GpuMonitor> GpuMonitor::Start(const Options& options, std::shared_ptr<DeviceTable> devices) {
  Result<nvml::Monitor> monitor =
      nvml::Monitor::Start({.frequency_hz = options.frequency_hz, .open = options.open});
  if (monitor.has_value()) return GpuMonitor(std::move(*monitor), std::move(devices), options.max_processes);
  if (monitor.error().code == ErrorCode::kNotFound)
    LogDebug("GPU metrics are not read: {}", monitor.error().message);
  else
    LogWarn("GPU metrics are not read: {}", monitor.error().message);
  return std::nullopt;
}

void GpuMonitor::SetSource(const Id128& source, int64_t epoch_offset_ns) {
  source_ = source;
  epoch_offset_ns_ = epoch_offset_ns;
}

std::vector<model::Batch> GpuMonitor::Poll() {
  std::vector<nvml::Reading> readings;
  std::vector<nvml::Notice> notices;
  const Status drained = monitor_.Drain(
      sources::VisitOnly([&](const nvml::Reading& reading) { readings.push_back(reading); },
                         [&](nvml::Notice&& notice) { notices.push_back(std::move(notice)); }));
  if (!drained.has_value()) LogWarn("{}", drained.error().message);
  WriteDevices();  // the readings' devices are known now
  looked_up_.clear();
  for (const nvml::Notice& notice : notices)
    notice.is_problem ? LogWarn("{}", notice.text) : LogInfo("{}", notice.text);
  for (const nvml::Reading& reading : readings) {
    std::optional<Id128> process;
    if (reading.pid != 0) {
      process = ProcessOf(reading.pid);
      if (!process.has_value()) continue;  // it has ended, or is in a pid namespace that we can't see
    }
    if (reading.metric == model::Metric::kGpuXid)
      LogXid(devices_[reading.device], static_cast<int64_t>(reading.value));
    rows_.metrics.Append({.time_ns = reading.time_ns + epoch_offset_ns_,
                          .source = source_,
                          .device = device_ids_[reading.device],
                          .process = process,
                          .metric = std::string(model::InfoOf(reading.metric).name),
                          .value = reading.value});
  }
  if (processes_.size() > max_processes_)
    std::erase_if(processes_, [this](const auto& known) { return !looked_up_.contains(known.first); });
  model::AppendDrops(monitor_.DrainDrops(), MonotonicNow() + epoch_offset_ns_, source_, rows_.drops);
  return rows_.Take();
}

std::vector<model::Batch> GpuMonitor::Finish() {
  monitor_.Stop();
  return Poll();
}

void GpuMonitor::WriteDevices() {
  devices_ = monitor_.devices();
  for (size_t i = device_ids_.size(); i < devices_.size(); ++i) {
    const nvml::Device& device = devices_[i];
    device_ids_.push_back(DeviceIdOf(device.uuid));
    const model::Device row{
        .device = device_ids_.back(),
        .source = source_,
        .ordinal = device.index,
        .uuid = device.uuid,
        .name = device.name,
        .simulated = SaysSimulated(device.name),
        .sm_count = device.sm_count > 0 ? std::optional(device.sm_count) : std::nullopt,
        .memory_bytes = device.memory_bytes > 0 ? std::optional(device.memory_bytes) : std::nullopt,
        .pci_bus = device.pci_bus.empty() ? std::nullopt : std::optional(device.pci_bus),
        .parent = device.mig.transform([](const nvml::MigPlace& mig) { return DeviceIdOf(mig.parent_uuid); }),
        .gpu_instance = device.mig.transform(
            [](const nvml::MigPlace& mig) { return static_cast<int32_t>(mig.gpu_instance); }),
        .compute_instance = device.mig.transform(
            [](const nvml::MigPlace& mig) { return static_cast<int32_t>(mig.compute_instance); })};
    if (const auto updated = device_table_->Add(row, DeviceTable::Witness::kNvml); updated.has_value())
      rows_.devices.Append(*updated);
  }
}

// Every process on a GPU gets a row, profiled or not. A later process may reuse a known pid.
std::optional<Id128> GpuMonitor::ProcessOf(int32_t pid) {
  const auto [found, is_new] = looked_up_.try_emplace(pid);
  if (!is_new) return found->second;
  const Result<proc::ProcessInfo> info = proc::ReadProcess(pid);
  if (!info.has_value()) return std::nullopt;
  KnownProcess& known = processes_[pid];
  if (known.id == Id128() || known.start_ticks != info->start_ticks) {
    known = {info->start_ticks, proc::MakeProcessId(boot_id_, pid, info->start_ticks)};
    rows_.processes.Append(
        ProcessRow(*info, known.id, source_, proc::MonotonicFromTicks(info->start_ticks) + epoch_offset_ns_));
  }
  found->second = known.id;
  return known.id;
}

}  // namespace gpusonde::agent
