// SPDX-License-Identifier: Apache-2.0
#include "analyze/report.h"
#include "base/json_writer.h"

namespace gpusonde::analyze {
namespace {

constexpr int32_t kVersion = 1;

void Write(JsonWriter& json, const TraceLine& line) {
  json.BeginObject().Field("path", line.path).Field("format", line.format).Field("events", line.events);
  json.Field("kernels", line.kernels).Field("kernel_ns", line.kernel_ns);
  json.Field("memcpys", line.memcpys)
      .Field("memcpy_bytes", line.memcpy_bytes)
      .Field("memcpy_ns", line.memcpy_ns);
  json.Field("memsets", line.memsets).Field("api_calls", line.api_calls).Field("ranges", line.ranges);
  json.Field("dropped", line.dropped).Field("duration_ns", line.duration_ns).EndObject();
}

void WriteDurations(JsonWriter& json, const DurationLine& line) {
  json.Field("count", line.count).Field("total_ns", line.total_ns);
  json.Field("min_ns", line.min_ns).Field("max_ns", line.max_ns);
  json.Field("mean_ns", line.mean_ns).Field("stddev_ns", line.stddev_ns);
  json.Field("p50_ns", line.p50_ns).Field("p90_ns", line.p90_ns).Field("p99_ns", line.p99_ns);
  json.Field("outliers", line.outliers);
}

void Write(JsonWriter& json, const DurationLine& line) {
  json.BeginObject().Field("name", line.name);
  WriteDurations(json, line);
  json.EndObject();
}

void Write(JsonWriter& json, const TransferLine& line) {
  json.BeginObject().Field("kind", line.kind).Field("source", line.source).Field("target", line.target);
  json.Field("bytes", line.bytes);
  WriteDurations(json, line.durations);
  json.EndObject();
}

void Write(JsonWriter& json, const Note& note) {
  json.BeginObject().Field("trace", static_cast<int64_t>(note.trace)).Field("kind", note.kind);
  json.Field("count", note.count).EndObject();
}

template <class Line>
void WriteAll(JsonWriter& json, std::string_view key, const std::vector<Line>& lines) {
  json.Key(key).BeginArray();
  for (const Line& line : lines) Write(json, line);
  json.EndArray();
}

}  // namespace

std::string ToJson(const Report& report) {
  JsonWriter json;
  json.BeginObject().Field("version", kVersion);
  WriteAll(json, "traces", report.traces);
  WriteAll(json, "kernels", report.kernels);
  WriteAll(json, "memcpys", report.memcpys);
  WriteAll(json, "memsets", report.memsets);
  WriteAll(json, "api_calls", report.api_calls);
  WriteAll(json, "notes", report.notes);
  json.EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::analyze
