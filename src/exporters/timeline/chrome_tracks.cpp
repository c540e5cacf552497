// SPDX-License-Identifier: Apache-2.0
#include "exporters/timeline/chrome_tracks.h"

#include <fmt/format.h>

namespace gpusonde::exporters {
namespace {

// Beyond Linux's largest process id, 2^22.
constexpr int64_t kFirstSpare = 5'000'000;

// Devices are shown below processes.
constexpr int64_t kDevicesOrder = 5'000'000;  // as in Kineto's traces

}  // namespace

ChromeTracks::ChromeTracks(const model::TimelineNames& names, Emit emit)
    : emit_(std::move(emit)), spare_(kFirstSpare) {
  for (const model::Device& device : names.devices) AddDevice(device.device, device.ordinal, device.name);
  for (const model::Process& process : names.processes)
    AddProcess(process.process, process.pid, process.name, process.command);
  for (const model::Thread& thread : names.threads) thread_names_[{thread.process, thread.tid}] = thread.name;
}

int64_t ChromeTracks::TakePid(int64_t wanted) {
  if (wanted >= 0 && pids_.insert(wanted).second) return wanted;
  while (!pids_.insert(spare_).second) ++spare_;
  return spare_;
}

void ChromeTracks::AddProcess(Id128 process, int64_t pid, std::string_view name, std::string_view command) {
  const auto [entry, is_new] = processes_.try_emplace(process);
  if (!is_new) return;
  Owner& owner = entry->second;
  owner.pid = TakePid(pid);
  owner.name = owner.pid == pid || pid < 0 ? std::string(name) : fmt::format("{} (pid {})", name, pid);
  owner.labels = command;
}

void ChromeTracks::AddDevice(Id128 device, int64_t ordinal, std::string_view name) {
  const auto [entry, is_new] = devices_.try_emplace(device);
  if (!is_new) return;
  Owner& owner = entry->second;
  owner.pid = TakePid(ordinal);
  owner.name = ordinal < 0 ? "GPU" : fmt::format("GPU {}", ordinal);
  owner.labels = name;
  owner.order = kDevicesOrder + owner.pid;
}

Result<int64_t> ChromeTracks::Named(Owner& owner) {
  if (owner.named) return owner.pid;
  owner.named = true;
  const auto emit = [&](std::string_view what, std::string_view key, const auto& value) {
    JsonWriter event;
    event.BeginObject().Field("ph", "M").Field("name", what).Field("pid", owner.pid).Field("tid", 0);
    event.Key("args").BeginObject().Field(key, value).EndObject().EndObject();
    return emit_(event);
  };
  TRY(emit("process_name", "name", owner.name));
  if (!owner.labels.empty()) TRY(emit("process_labels", "labels", owner.labels));
  TRY(emit("process_sort_index", "sort_index", owner.order));
  return owner.pid;
}

Status ChromeTracks::NameThread(const Track& track, std::string_view name) {
  if (name.empty() || !named_.insert(track).second) return {};
  JsonWriter event;
  event.BeginObject().Field("ph", "M").Field("name", "thread_name");
  event.Field("pid", track.pid).Field("tid", track.tid);
  event.Key("args").BeginObject().Field("name", name).EndObject().EndObject();
  return emit_(event);
}

Result<int64_t> ChromeTracks::OfProcess(Id128 process) {
  if (!processes_.contains(process)) AddProcess(process, -1, "unknown process", "");
  return Named(processes_[process]);
}

Result<int64_t> ChromeTracks::OfDevice(Id128 device) {
  if (!devices_.contains(device)) AddDevice(device, -1, "");
  return Named(devices_[device]);
}

Result<int64_t> ChromeTracks::OfMachine(Id128 source) {
  const auto [entry, is_new] = machines_.try_emplace(source);
  if (is_new) entry->second = {.pid = TakePid(-1), .name = "machine", .labels = ""};
  return Named(entry->second);
}

Result<ChromeTracks::Track> ChromeTracks::OfThread(Id128 process, int32_t tid) {
  ASSIGN_OR_RETURN(const int64_t pid, OfProcess(process));
  const Track track{.pid = pid, .tid = tid};
  if (const auto name = thread_names_.find({process, tid}); name != thread_names_.end())
    TRY(NameThread(track, name->second));
  return track;
}

Result<ChromeTracks::Track> ChromeTracks::OfWork(const model::GpuWork& work) {
  const auto [entry, is_new] = streams_.try_emplace({work.device, work.process, work.context, work.stream});
  Track& track = entry->second;
  if (!is_new) return track;
  ASSIGN_OR_RETURN(track.pid, OfDevice(work.device));
  track.tid = work.stream;
  std::string name = fmt::format("stream {}", work.stream);
  if (named_.contains(track)) {
    track.tid = ++spare_;
    const auto process = processes_.find(work.process);
    name += fmt::format(" of {}, context {}",
                        process != processes_.end() ? process->second.name : "another process", work.context);
  }
  TRY(NameThread(track, name));
  return track;
}

}  // namespace gpusonde::exporters
