// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <span>

#include "base/json_writer.h"
#include "compare/comparison.h"

namespace gpusonde::compare {
namespace {

constexpr int32_t kVersion = 1;
constexpr size_t kMaxChanges = 100;  // stacks that grew, and that shrank

int64_t Whole(double value) { return std::llround(value); }

void WriteRun(JsonWriter& json, std::string_view key, const Run& run) {
  json.Key(key).BeginObject().Key("paths").BeginArray();
  for (const std::string& path : run.paths) json.Value(path);
  json.EndArray().Field("runs", run.runs).Field("ranks", run.ranks).Key("notes").BeginArray();
  for (const std::string& note : run.notes) json.Value(note);
  json.EndArray().EndObject();
}

void WriteRatio(JsonWriter& json, std::string_view key, const std::optional<Ratio>& ratio) {
  if (!ratio.has_value()) {
    json.Field(key, std::optional<double>());
    return;
  }
  json.Key(key)
      .BeginObject()
      .Field("ratio", ratio->ratio)
      .Field("low", ratio->low)
      .Field("high", ratio->high);
  json.Field("p", ratio->p).Field("significant", ratio->significant).Field("detectable", ratio->detectable);
  json.Field("apart_low", ratio->apart.transform([](const Ratio::Apart& apart) { return apart.low; }));
  json.Field("apart_high", ratio->apart.transform([](const Ratio::Apart& apart) { return apart.high; }));
  json.Field("between_runs", ratio->between_runs).EndObject();
}

void WriteFields(JsonWriter& json, const Line& line) {
  json.Field("name", line.name).Field("count_a", line.count_a).Field("count_b", line.count_b);
  json.Field("a_ns", Whole(line.a_ns)).Field("b_ns", Whole(line.b_ns));
}

void WriteLines(JsonWriter& json, std::string_view key, std::span<const Line> lines) {
  json.Key(key).BeginArray();
  for (const Line& line : lines) {
    json.BeginObject();
    WriteFields(json, line);
    json.EndObject();
  }
  json.EndArray();
}

void WriteKernels(JsonWriter& json, std::string_view key, std::span<const KernelLine> lines) {
  json.Key(key).BeginArray();
  for (const KernelLine& kernel : lines) {
    json.BeginObject();
    WriteFields(json, kernel.line);
    json.Field("communication", kernel.communication).Field("change", Name(kernel.change));
    json.Field("slower_ns", Whole(kernel.slower_ns));
    WriteRatio(json, "duration", kernel.duration);
    json.Field("other_shapes", kernel.other_shapes);
    json.EndObject();
  }
  json.EndArray();
}

void WriteStacks(JsonWriter& json, std::string_view key, const std::vector<StackLine>& lines) {
  json.Key(key).BeginArray();
  for (const StackLine& line : lines) {
    json.BeginObject().Key("frames").BeginArray();
    for (const std::string& frame : line.frames) json.Value(frame);
    json.EndArray().Field("a_ns", Whole(line.a_ns)).Field("b_ns", Whole(line.b_ns)).EndObject();
  }
  json.EndArray();
}

}  // namespace

std::string ToJson(const Comparison& comparison, std::optional<size_t> most) {
  JsonWriter json;
  json.BeginObject().Field("version", kVersion);
  WriteRun(json, "a", comparison.a);
  WriteRun(json, "b", comparison.b);
  json.Field("work", comparison.work).Field("work_by_steps", comparison.work_by_steps);
  WriteRatio(json, "pace", comparison.pace);
  WriteRatio(json, "duration", comparison.duration);
  json.Key("times").BeginArray();
  for (const Line& line : comparison.times) {
    json.BeginObject().Field("name", line.name);
    json.Field("a_ns", Whole(line.a_ns)).Field("b_ns", Whole(line.b_ns)).EndObject();
  }
  json.EndArray();
  size_t omitted = 0;
  const auto first = [&](const auto& lines) {
    const size_t written = std::min(lines.size(), most.value_or(lines.size()));
    omitted += lines.size() - written;
    return std::span(lines).first(written);
  };
  WriteKernels(json, "kernels", first(comparison.kernels));
  WriteKernels(json, "phases", first(comparison.phases));
  WriteLines(json, "kinds", first(comparison.kinds));
  WriteLines(json, "graphs", first(comparison.graphs));
  WriteLines(json, "copies", first(comparison.copies));
  WriteLines(json, "api_calls", first(comparison.calls));
  if (most.has_value()) json.Field("omitted", static_cast<int64_t>(omitted));
  json.Key("stacks").BeginArray();
  for (const StackDiff& diff : comparison.stacks) {
    json.BeginObject().Field("type", model::EnumNames<model::ProfileType>::Name(diff.type()));
    WriteStacks(json, "operators", diff.Operators());
    WriteStacks(json, "changes", diff.Changes(kMaxChanges));
    json.EndObject();
  }
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::compare
