// SPDX-License-Identifier: Apache-2.0
#include "server/tracks_json.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "base/json_writer.h"
#include "base/time.h"
#include "server/api_json.h"

namespace gpusonde::server {
namespace {

// A column of whole numbers, left out where every slice has the value that its absence means.
template <class Value, class Absent>
void WriteColumn(JsonWriter& json, std::string_view key, const std::vector<store::Slice>& slices,
                 const Value& value, const Absent& absent) {
  if (std::ranges::all_of(slices, [&](const store::Slice& slice) { return value(slice) == absent(slice); }))
    return;
  std::vector<int64_t> column;
  column.reserve(slices.size());
  for (const store::Slice& slice : slices) column.push_back(value(slice));
  json.Column(key, column);
}

void WriteSlices(JsonWriter& json, const std::vector<store::Slice>& slices, int64_t from_ns) {
  constexpr auto kNever = [](const store::Slice&) { return std::numeric_limits<int64_t>::min(); };
  json.Key("slices").BeginObject();
  WriteColumn(
      json, "start", slices, [from_ns](const auto& slice) { return slice.start_ns - from_ns; }, kNever);
  WriteColumn(json, "length", slices, [](const auto& slice) { return slice.length_ns; }, kNever);
  WriteColumn(json, "name", slices, [](const auto& slice) { return int64_t{slice.name}; }, kNever);
  WriteColumn(
      json, "row", slices, [](const auto& slice) { return int64_t{slice.row}; },
      [](const auto&) { return int64_t{0}; });
  WriteColumn(
      json, "count", slices, [](const auto& slice) { return slice.count; },
      [](const auto&) { return int64_t{1}; });
  WriteColumn(
      json, "busy", slices, [](const auto& slice) { return slice.busy_ns; },
      [](const auto& slice) { return slice.length_ns; });
  json.EndObject();
}

void WriteTrack(JsonWriter& json, const store::Track& track, int64_t from_ns) {
  json.BeginObject().Field("kind", store::NameOf(track.kind)).Field("process", track.process.ToHex());
  if (track.device.has_value()) json.Field("device", track.device->ToHex()).Field("stream", track.stream);
  if (track.tid.has_value()) json.Field("tid", *track.tid).Field("thread", track.thread);
  json.Field("rows", track.rows);
  WriteSlices(json, track.slices, from_ns);
  json.EndObject();
}

void WriteUser(JsonWriter& json, const store::DeviceUser& user, int64_t from_ns) {
  std::vector<int64_t> starts, lengths;
  for (const TimeRange& time : user.observed) {
    starts.push_back(time.from_ns - from_ns);
    lengths.push_back(time.to_ns - time.from_ns);
  }
  json.BeginObject().Field("process", user.process.ToHex()).Field("device", user.device.ToHex());
  json.Key("observed")
      .BeginObject()
      .Column("start", starts)
      .Column("length", lengths)
      .EndObject()
      .EndObject();
}

std::string KindOf(const store::EventName& name) {
  return name.kind == store::EventKind::kState ? "state_" + name.text : std::string(store::NameOf(name.kind));
}

void WriteLaunch(JsonWriter& json, const store::Launch& launch, int64_t work_start_ns) {
  json.BeginObject().Field("name", launch.name).Field("tid", launch.tid).Field("thread", launch.thread);
  json.Field("before_ns", work_start_ns - launch.start_ns)
      .Field("duration_ns", launch.end_ns - launch.start_ns);
  json.Key("stack").BeginArray();
  for (const std::string& frame : launch.stack) json.Value(frame);
  json.EndArray().EndObject();
}

}  // namespace

std::string TracksJson(const store::Tracks& tracks) {
  const TimeRange& range = tracks.grid.range;
  const int64_t from_us = range.from_ns / kNanosPerMicro;
  JsonWriter json;
  json.BeginObject().Field("from_us", from_us);
  json.Field("to_us", (range.to_ns + kNanosPerMicro - 1) / kNanosPerMicro);
  json.Field("resolution_ns", tracks.grid.resolution_ns).Field("events", tracks.events);
  json.Key("names").BeginArray();
  for (const store::EventName& name : tracks.names)
    json.BeginObject().Field("name", name.text).Field("kind", KindOf(name)).EndObject();
  json.EndArray().Key("devices").BeginArray();
  for (const store::GpuDevice& device : tracks.devices)
    json.BeginObject()
        .Field("device", device.device.ToHex())
        .Field("label", LabelOf(device))
        .Field("name", device.name)
        .Field("simulated", device.simulated)
        .EndObject();
  json.EndArray().Key("processes").BeginArray();
  for (const store::TrackProcess& process : tracks.processes)
    json.BeginObject()
        .Field("process", process.process.ToHex())
        .Field("pid", process.pid)
        .Field("name", process.name)
        .Field("command", process.command)
        .EndObject();
  json.EndArray().Key("gpu_users").BeginArray();
  for (const store::DeviceUser& user : tracks.users) WriteUser(json, user, from_us * kNanosPerMicro);
  json.EndArray().Key("tracks").BeginArray();
  for (const store::Track& track : tracks.tracks) WriteTrack(json, track, from_us * kNanosPerMicro);
  json.EndArray().Field("omitted_tracks", tracks.omitted).EndObject();
  return json.Take();
}

std::string WorkJson(const store::LaunchedWork& launched) {
  const model::GpuWork& work = launched.work;
  constexpr std::string_view kKinds[] = {"kernel", "memcpy", "memset"};
  JsonWriter json;
  json.BeginObject().Key("work").BeginObject();
  json.Field("kind", kKinds[static_cast<size_t>(work.kind)]);
  json.Field("start_us", work.start_ns / kNanosPerMicro).Field("start_ns", std::to_string(work.start_ns));
  json.Field("duration_ns", work.end_ns - work.start_ns).Field("correlation", work.correlation);
  json.Field("graph_node", work.graph_node);
  if (work.kind == model::GpuWork::Kind::kKernel) {
    json.Field("name", work.name);
    json.Column("grid", work.grid).Column("block", work.block);
    json.Field("registers", work.registers).Field("shared_bytes", work.shared_bytes);
  } else {
    json.Field("name", work.kind == model::GpuWork::Kind::kMemset ? "memset" : work.copy);
    json.Field("bytes", work.bytes);
  }
  if (work.kind == model::GpuWork::Kind::kMemcpy)
    json.Field("copy", work.copy)
        .Field("source_memory", work.source_memory)
        .Field("target_memory", work.target_memory);
  json.EndObject().Key("launch");
  if (launched.launch.has_value())
    WriteLaunch(json, *launched.launch, work.start_ns);
  else
    json.Value(std::optional<double>());
  json.EndObject();
  return json.Take();
}

}  // namespace gpusonde::server
