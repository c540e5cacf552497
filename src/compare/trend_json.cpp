// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "base/json_writer.h"
#include "compare/trend.h"

namespace gpusonde::compare {
namespace {

constexpr int32_t kTrendVersion = 1;

void WriteTrendRun(JsonWriter& json, const TrendRun& run) {
  json.BeginObject().Key("paths").BeginArray();
  for (const std::string& path : run.paths) json.Value(path);
  json.EndArray().Field("ranks", run.ranks).Field("start_ns", run.start_ns).Field("work", run.work);
  json.Key("notes").BeginArray();
  for (const std::string& note : run.notes) json.Value(note);
  json.EndArray().EndObject();
}

void WriteSeries(JsonWriter& json, const Series& series) {
  json.BeginObject().Field("kind", Name(series.kind)).Field("name", series.name);
  json.Key("values_ns").BeginArray();
  for (const std::optional<double>& value : series.values_ns)
    json.Value(value.has_value() ? std::optional<int64_t>(std::llround(*value)) : std::nullopt);
  json.EndArray().Key("changes").BeginArray();
  for (const ChangePoint& change : series.changes) {
    json.BeginObject().Field("run", static_cast<int64_t>(change.run)).Field("ratio", change.ratio);
    json.Field("low", change.low).Field("high", change.high).Field("p", change.p);
    json.Field("before_ns", static_cast<int64_t>(std::llround(change.before_ns)))
        .Field("after_ns", static_cast<int64_t>(std::llround(change.after_ns)));
    json.EndObject();
  }
  json.EndArray().EndObject();
}

}  // namespace

std::string ToJson(const Trend& trend) {
  JsonWriter json;
  json.BeginObject().Field("version", kTrendVersion).Field("by_start", trend.by_start);
  json.Key("runs").BeginArray();
  for (const TrendRun& run : trend.runs) WriteTrendRun(json, run);
  json.EndArray().Key("series").BeginArray();
  for (const Series& series : trend.series) WriteSeries(json, series);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::compare
