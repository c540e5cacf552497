// SPDX-License-Identifier: Apache-2.0
#include "convert/trace_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "base/utf8.h"
#include "base/version.h"
#include "importers/ncu/units.h"
#include "model/drops.h"

namespace gpusonde::convert {
namespace {

using importers::Dropped;
using importers::GpuDetail;
using importers::GpuEvent;
using importers::GpuWork;
using importers::Span;
using importers::SyncWait;

// CUPTI's records are of one session.
constexpr int32_t kSession = 1;

// Kineto's names of threads begin so: "thread 23704 (python3)".
constexpr std::string_view kThread = "thread ";

int32_t Narrow(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, 0, std::numeric_limits<int32_t>::max()));
}
std::optional<int32_t> Narrow(std::optional<int64_t> value) {
  return value.has_value() ? std::optional(Narrow(*value)) : std::nullopt;
}

}  // namespace

TraceRows::TraceRows(Identity identity, const importers::TraceInfo& info, Rows& rows)
    : identity_(std::move(identity)),
      info_(info),
      rows_(rows),
      spans_(std::make_shared<analyze::TemporaryFile>()),
      allocations_(std::make_shared<analyze::TemporaryFile>()) {}

Status TraceRows::status() const { return status_.has_value() ? names_.status() : status_; }

int64_t TraceRows::dropped() const { return std::accumulate(dropped_.begin(), dropped_.end(), int64_t{0}); }

void TraceRows::Detailed(const importers::EventBatch& batch) {
  if (!status_.has_value()) return;
  for (size_t i = 0; i < batch.gpu.size(); ++i) Add(batch.gpu[i], batch.gpu_details[i]);
  for (const SyncWait& wait : batch.syncs) Add(wait);
  for (const Span& span : batch.spans) Add(span);
  for (const importers::Allocation& allocation : batch.allocations) Add(allocation);
  events_ += static_cast<int64_t>(batch.size());
  gpu_events_ += static_cast<int64_t>(batch.gpu.size());
  if (status_.has_value()) status_ = rows_.PassFull();
}

void TraceRows::Launch(const importers::MeasuredLaunch& launch,
                       std::span<const importers::MetricValue> metrics) {
  if (!status_.has_value()) return;
  const Id128 process = ProcessOf(KeyOf(launch.process)).id;
  const Id128 device = DeviceOf(launch.process, launch.device);
  const std::string name = ToUtf8(names_.Get(launch.name));
  for (const importers::MetricValue& metric : metrics) {
    std::string unit = ToUtf8(names_.Get(metric.unit));
    const double scale = std::pow(10.0, importers::ncu::DecimalsOf(unit));
    rows_.kernel_metrics.Append({.process = process,
                                 .device = device,
                                 .launch = launches_,
                                 .name = name,
                                 .metric = ToUtf8(names_.Get(metric.metric)),
                                 .unit = std::move(unit),
                                 .value = static_cast<double>(metric.value) / scale});
  }
  ++launches_;
  ++gpu_events_;
  events_ += std::ssize(metrics);
  status_ = rows_.PassFull();
}

void TraceRows::NameProcess(int64_t process, std::string_view name) {
  if (process_names_.size() < kMaxThreads) process_names_[process] = ToUtf8(name);
}

void TraceRows::NameThread(int64_t process, int32_t tid, std::string_view name) {
  if (thread_names_.size() < kMaxThreads)
    thread_names_[{KeyOf(process), tid}] =
        ToUtf8(name.starts_with(kThread) ? name.substr(kThread.size()) : name);
}

void TraceRows::NameDomain(int64_t process, int32_t domain, std::string_view name) {
  if (domain_names_.size() < kMaxThreads) domain_names_[{KeyOf(process), domain}] = ToUtf8(name);
}

TraceRows::Process& TraceRows::ProcessOf(int64_t key) {
  const auto [entry, is_new] = processes_.try_emplace(key);
  if (is_new) {
    entry->second.id =
        IdHasher("process of a trace").Add(identity_.source).Add(static_cast<uint64_t>(key)).Finish();
    if (processes_.size() > kMaxProcesses && status_.has_value())
      status_ = Fail(ErrorCode::kUnsupported,
                     fmt::format("{}: events of more than {} processes", identity_.file_name, kMaxProcesses));
  }
  return entry->second;
}

Id128 TraceRows::DeviceOf(int64_t process, int32_t ordinal) {
  const int64_t pid = importers::PidOf(process);
  const auto [entry, is_new] = devices_.try_emplace({pid, ordinal});
  if (!is_new) return entry->second;
  const auto known = std::ranges::find_if(info_.devices, [&](const importers::TracedDevice& device) {
    return device.ordinal == ordinal && (device.pid == 0 || device.pid == pid);
  });
  const importers::TracedDevice device = known != info_.devices.end() ? *known : importers::TracedDevice();
  // With its UUID a device is the same in every recording; without, it is this trace's.
  entry->second = device.uuid.empty()
                      ? IdHasher("device").Add(identity_.source).Add(static_cast<uint64_t>(ordinal)).Finish()
                      : IdHasher("device").Add(device.uuid).Finish();
  rows_.devices.Append(
      {.device = entry->second,
       .source = identity_.source,
       .ordinal = ordinal,
       .uuid = ToUtf8(device.uuid),
       .name = device.name.empty() ? "GPU" : ToUtf8(device.name),
       .simulated = false,
       .sm_count = Narrow(device.sm_count),
       .memory_bytes = device.memory_bytes,
       .pci_bus = device.pci_bus.empty() ? std::nullopt : std::optional(ToUtf8(device.pci_bus))});
  return entry->second;
}

void TraceRows::Extend(std::optional<TimeRange>& range, int64_t start_ns, int64_t end_ns) {
  if (!range.has_value()) range = TimeRange{start_ns, end_ns};
  range->from_ns = std::min(range->from_ns, start_ns);
  range->to_ns = std::max(range->to_ns, end_ns);
}

void TraceRows::Add(const GpuEvent& event, const GpuDetail& detail) {
  Process& process = ProcessOf(KeyOf(event.process));
  process.has_work = true;
  const int64_t start_ns = At(event.start_ns);
  const int64_t end_ns = At(event.end_ns);
  Extend(process.gpu, start_ns, end_ns);
  Extend(extent_, start_ns, end_ns);
  const Id128 device = DeviceOf(event.process, event.device);
  switch (event.work) {
    case GpuWork::kKernel:
    case GpuWork::kGraph: {
      const auto& extents = detail.grid_and_block;
      rows_.kernels.Append({.process = process.id,
                            .device = device,
                            .session = kSession,
                            .correlation = event.correlation,
                            .context = detail.context,
                            .stream = event.stream,
                            .start_ns = start_ns,
                            .end_ns = end_ns,
                            .name = ToUtf8(names_.Get(event.name)),
                            .grid_x = Narrow(extents[0]),
                            .grid_y = Narrow(extents[1]),
                            .grid_z = Narrow(extents[2]),
                            .block_x = Narrow(extents[3]),
                            .block_y = Narrow(extents[4]),
                            .block_z = Narrow(extents[5]),
                            .registers = Narrow(detail.registers),
                            .static_shared_bytes = detail.static_shared_bytes,
                            .dynamic_shared_bytes = detail.dynamic_shared_bytes,
                            .graph_node = detail.graph_node});
      return;
    }
    case GpuWork::kMemcpy:
      rows_.memcpys.Append({.process = process.id,
                            .device = device,
                            .session = kSession,
                            .correlation = event.correlation,
                            .context = detail.context,
                            .stream = event.stream,
                            .start_ns = start_ns,
                            .end_ns = end_ns,
                            .bytes = event.bytes,
                            .kind = std::string(importers::Name(event.copy)),
                            .source_memory = std::string(importers::Name(event.source)),
                            .target_memory = std::string(importers::Name(event.target)),
                            .asynchronous = false,
                            .graph_node = detail.graph_node});
      return;
    case GpuWork::kMemset:
      rows_.memsets.Append({.process = process.id,
                            .device = device,
                            .session = kSession,
                            .correlation = event.correlation,
                            .context = detail.context,
                            .stream = event.stream,
                            .start_ns = start_ns,
                            .end_ns = end_ns,
                            .bytes = event.bytes,
                            .graph_node = detail.graph_node});
      return;
  }
}

void TraceRows::Add(const SyncWait& wait) {
  has_waits_ = true;
  Process& process = ProcessOf(KeyOf(wait.process));
  const int64_t start_ns = At(wait.start_ns);
  const int64_t end_ns = At(wait.end_ns);
  Extend(process.gpu, start_ns, end_ns);
  Extend(extent_, start_ns, end_ns);
  rows_.syncs.Append({.process = process.id,
                      .device = DeviceOf(wait.process, wait.device),
                      .session = kSession,
                      .correlation = wait.correlation,
                      .context = wait.context,
                      .stream = wait.stream,
                      .start_ns = start_ns,
                      .end_ns = end_ns,
                      .kind = std::string(importers::Name(wait.kind))});
}

void TraceRows::Add(Span span) {
  if (identity_.one_process && !pid_.has_value() && span.process != 0) pid_ = span.process;
  span.process = KeyOf(span.process);
  Process& process = ProcessOf(span.process);
  if (span.kind == importers::SpanKind::kCall) Extend(process.gpu, At(span.start_ns), At(span.end_ns));
  Extend(extent_, At(span.start_ns), At(span.end_ns));
  if (threads_.size() < kMaxThreads) threads_.insert({span.process, span.tid});
  spans_.Add(span);
}

void TraceRows::Add(const importers::Allocation& allocation) {
  const int64_t process = KeyOf(allocation.process);
  ProcessOf(process);
  Extend(extent_, At(allocation.time_ns), At(allocation.time_ns));
  if (threads_.size() < kMaxThreads) threads_.insert({process, allocation.tid});
  allocations_.Add({.device = DeviceOf(process, allocation.device),
                    .time_ns = allocation.time_ns,
                    .process = process,
                    .address = allocation.address,
                    .bytes = allocation.bytes,
                    .tid = allocation.tid});
}

Status TraceRows::Finish() {
  TRY(status());
  WriteSource();
  WriteProcesses();
  TRY(spans_.Finish());
  TRY(allocations_.Finish());
  model::DropCounts drops;
  if (!has_waits_)
    for (auto& [key, process] : processes_) process.awaited = OnlyDeviceOf(key);
  const auto find_process = [this](int64_t key) {
    const Process& process = ProcessOf(key);
    return SpanRows::Process{.id = process.id, .awaited = process.awaited};
  };
  SpanRows spans(names_, domain_names_, find_process, info_.epoch_offset_ns, rows_, drops);
  TRY(spans.Write(spans_, allocations_));
  WriteDrops(drops);
  TRY(status());
  return rows_.PassAll();
}

// The device that a process uses; none if it uses several.
std::optional<Id128> TraceRows::OnlyDeviceOf(int64_t key) const {
  std::optional<Id128> only;
  for (const auto& [user, device] : devices_) {
    if (!identity_.one_process && user.first != importers::PidOf(key)) continue;
    if (only.has_value() && *only != device) return std::nullopt;
    only = device;
  }
  return only;
}

void TraceRows::WriteSource() {
  rows_.sources.Append({.source = identity_.source,
                        .kind = model::SourceKind::kImport,
                        .host = "",
                        .boot_id = "",
                        .kernel = "",
                        .version = std::string(kVersion),
                        .cpus = 0,
                        .sampling_hz = std::nullopt,
                        .command = ToUtf8(identity_.file_name),
                        .epoch_offset_ns = info_.epoch_offset_ns,
                        .started_ns = extent_.has_value() ? extent_->from_ns : At(0),
                        .ended_ns = extent_.has_value() ? extent_->to_ns : At(0)});
}

void TraceRows::WriteProcesses() {
  for (const auto& [key, process] : processes_) {
    const int64_t pid = pid_.value_or(importers::PidOf(key));
    const auto name = process_names_.find(identity_.one_process ? pid : key);
    std::string shown = name != process_names_.end() && !name->second.empty() ? name->second : "process";
    // Of several processes, such as a launcher's, the rank is the one with GPU work.
    if (info_.rank.has_value() && (processes_.size() == 1 || process.has_work))
      shown = fmt::format("rank {} ({})", *info_.rank, shown);
    rows_.processes.Append({.process = process.id,
                            .source = identity_.source,
                            .pid = static_cast<int32_t>(pid),
                            .parent_pid = 0,
                            .name = shown,
                            .command = ToUtf8(identity_.file_name),
                            .executable = "",
                            .cgroup = "",
                            .user_id = std::nullopt,
                            .started_ns = extent_.has_value() ? extent_->from_ns : At(0),
                            .exited_ns = std::nullopt});
    if (!process.gpu.has_value()) continue;
    rows_.gpu_sessions.Append({.process = process.id,
                               .session = kSession,
                               // Sessions without a begin have 0.
                               .start_ns = std::max<int64_t>(process.gpu->from_ns, 1),
                               .end_ns = process.gpu->to_ns,
                               .end_reason = "unknown",
                               .cupti_version = 0});
  }
  for (const auto& [key, tid] : threads_) {
    const auto name = thread_names_.find({key, tid});
    rows_.threads.Append({.process = ProcessOf(key).id,
                          .tid = tid,
                          .name = name != thread_names_.end() ? name->second : std::to_string(tid),
                          .started_ns = std::nullopt,
                          .exited_ns = std::nullopt});
  }
}

void TraceRows::WriteDrops(const model::DropCounts& stacks) {
  using model::DropReason;
  model::DropCounts drops = stacks;
  const int64_t untimed = dropped_[static_cast<size_t>(Dropped::kNotCollected)];
  drops.Add(DropReason::kGpuUntimed, untimed);
  drops.Add(DropReason::kTraceEventsDropped, dropped() - untimed);
  drops.Add(DropReason::kTraceEventsUnused, unused_);
  model::AppendDrops(drops, extent_.has_value() ? extent_->to_ns : At(0), identity_.source, rows_.drops);
}

}  // namespace gpusonde::convert
