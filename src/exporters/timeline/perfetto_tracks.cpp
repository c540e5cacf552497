// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/perfetto_tracks.h"

#include <fmt/format.h>

#include <optional>

#include "base/utf8.h"
#include "model/metric_catalogue.h"

namespace gpusonde::exporters {

PerfettoTracks::PerfettoTracks(const model::TimelineNames& names, PacketWriter& writer) : writer_(writer) {
  for (const model::Process& process : names.processes) process_rows_[process.process] = process;
  for (const model::Thread& thread : names.threads) thread_names_[{thread.process, thread.tid}] = thread.name;
  for (const model::Device& device : names.devices)
    devices_[device.device].name = fmt::format("GPU {}: {}", device.ordinal, device.name);
}

Result<uint64_t> PerfettoTracks::Describe(perfetto::TrackDescriptor& track) {
  track.set_uuid(++last_);
  TRY(writer_.Write(track));
  return last_;
}

Result<uint64_t> PerfettoTracks::Place(Row& row, int64_t start_ns, int64_t end_ns) {
  const size_t lane = row.lanes.Place(start_ns, end_ns);
  while (row.tracks.size() <= lane) {
    perfetto::TrackDescriptor track;
    track.set_parent_uuid(row.parent);
    track.set_name(ToUtf8(row.name));
    ASSIGN_OR_RETURN(row.tracks.emplace_back(), Describe(track));
  }
  return row.tracks[lane];
}

Result<uint64_t> PerfettoTracks::OfProcess(Id128 process) {
  uint64_t& uuid = processes_[process];
  if (uuid != 0) return uuid;
  perfetto::TrackDescriptor track;
  const auto known = process_rows_.find(process);
  if (known == process_rows_.end()) {
    track.set_name("unknown process");
  } else {
    track.mutable_process()->set_pid(known->second.pid);
    track.mutable_process()->set_process_name(ToUtf8(known->second.name));
    track.mutable_process()->add_cmdline(ToUtf8(known->second.command));
  }
  ASSIGN_OR_RETURN(uuid, Describe(track));
  return uuid;
}

Result<uint64_t> PerfettoTracks::OfDevice(Id128 device) {
  Device& known = devices_[device];
  if (known.track != 0) return known.track;
  perfetto::TrackDescriptor track;
  track.set_name(known.name.empty() ? "unknown GPU" : ToUtf8(known.name));
  ASSIGN_OR_RETURN(known.track, Describe(track));
  return known.track;
}

Result<uint64_t> PerfettoTracks::OfThread(Id128 process, int32_t tid, int64_t start_ns, int64_t end_ns) {
  const auto [entry, is_new] = threads_.try_emplace({process, tid});
  Row& row = entry->second;
  if (is_new) {
    ASSIGN_OR_RETURN(const uint64_t parent, OfProcess(process));
    perfetto::TrackDescriptor track;
    track.set_parent_uuid(parent);
    const auto name = thread_names_.find(entry->first);
    if (const auto known = process_rows_.find(process); known != process_rows_.end()) {
      track.mutable_thread()->set_pid(known->second.pid);
      track.mutable_thread()->set_tid(tid);
      if (name != thread_names_.end()) track.mutable_thread()->set_thread_name(ToUtf8(name->second));
    } else {
      track.set_name(fmt::format("thread {}", tid));
    }
    ASSIGN_OR_RETURN(const uint64_t first, Describe(track));
    row.tracks.push_back(first);
    row.parent = first;
    row.name = "overlapping";
  }
  return Place(row, start_ns, end_ns);
}

Result<uint64_t> PerfettoTracks::OfWork(const model::GpuWork& work) {
  const auto [entry, is_new] = streams_.try_emplace({work.device, work.process, work.context, work.stream});
  Row& row = entry->second;
  if (is_new) {
    ASSIGN_OR_RETURN(row.parent, OfDevice(work.device));
    row.name = fmt::format("stream {}", work.stream);
    Device& device = devices_[work.device];
    if (device.process.IsZero()) device.process = work.process;
    if (device.process != work.process) {
      const auto other = process_rows_.find(work.process);
      row.name += other == process_rows_.end()
                      ? " of an unknown process"
                      : fmt::format(" of {} (pid {})", other->second.name, other->second.pid);
    }
  }
  return Place(row, work.start_ns, work.end_ns);
}

Result<uint64_t> PerfettoTracks::OfRow(Id128 process, std::string_view name, int64_t start_ns,
                                       int64_t end_ns) {
  const auto [entry, is_new] = rows_.try_emplace({process, std::string(name)});
  if (is_new) {
    ASSIGN_OR_RETURN(entry->second.parent, OfProcess(process));
    entry->second.name = name;
  }
  return Place(entry->second, start_ns, end_ns);
}

Result<uint64_t> PerfettoTracks::OfCounter(const model::MetricValue& value) {
  uint64_t parent = 0;  // of a source's values that belong to neither: none
  std::string name = value.metric;
  if (value.process.has_value()) {
    ASSIGN_OR_RETURN(parent, OfProcess(*value.process));
  } else if (value.device.has_value()) {
    ASSIGN_OR_RETURN(parent, OfDevice(*value.device));
  }
  const Id128 of = value.device.value_or(value.source);
  const auto [entry, is_new] = counters_.try_emplace({parent, of, value.metric});
  if (!is_new) return entry->second;
  // A process may use several devices, each with a value of its own.
  if (value.process.has_value() && value.device.has_value())
    if (const auto device = devices_.find(*value.device); device != devices_.end())
      name += " on " + device->second.name;
  const std::optional<model::Metric> metric = model::FindMetric(value.metric);
  if (metric.has_value() && !model::InfoOf(*metric).unit.empty())
    name += fmt::format(" ({})", model::InfoOf(*metric).unit);
  perfetto::TrackDescriptor track;
  if (parent != 0) track.set_parent_uuid(parent);
  track.set_name(ToUtf8(name));
  track.mutable_counter();
  ASSIGN_OR_RETURN(entry->second, Describe(track));
  return entry->second;
}

}  // namespace gpusonde::exporters
