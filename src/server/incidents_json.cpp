// SPDX-License-Identifier: Apache-2.0
#include "server/incidents_json.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/json_writer.h"
#include "base/time.h"
#include "model/metric_catalogue.h"

namespace gpusonde::server {
namespace {

constexpr std::string_view kStep = "step.";
constexpr std::string_view kCause = "cause.";

std::string_view LabelOf(std::string_view metric) {
  return metric == "step" ? "Step time" : model::LabelOf(metric);
}

void WriteEvidence(JsonWriter& json, const model::Evidence& evidence, std::string_view name) {
  json.BeginObject().Field("signal", name).Field("label", LabelOf(evidence.signal));
  json.Field("before", evidence.before).Field("during", evidence.during).Field("score", evidence.score);
  json.Field("sentence", evidence.sentence).EndObject();
}

// Writes the evidence whose signal begins with `prefix`, named without it; with an empty prefix, all other
// evidence.
void WriteAll(JsonWriter& json, std::string_view key, const store::IncidentInfo& info,
              std::string_view prefix) {
  json.Key(key).BeginArray();
  for (const model::Evidence& evidence : info.evidence) {
    const std::string_view signal = evidence.signal;
    const bool other = !signal.starts_with(kStep) && !signal.starts_with(kCause);
    if (prefix.empty() ? other : signal.starts_with(prefix))
      WriteEvidence(json, evidence, signal.substr(prefix.size()));
  }
  json.EndArray();
}

std::string_view UnitOf(const store::IncidentStrip& strip) {
  if (strip.metric == "step") return "ns";
  // Of states in which threads don't run, how many threads are in it on average.
  if (!strip.gpu.has_value())
    return strip.metric == model::InfoOf(model::Metric::kThreadRunning).name ||
                   strip.metric == model::InfoOf(model::Metric::kThreadInterrupted).name
               ? "cores"
               : "threads";
  const std::optional<model::Metric> known = model::FindMetric(strip.metric);
  return known.has_value() ? model::InfoOf(*known).unit : "";
}

void WriteStrip(JsonWriter& json, const store::IncidentStrip& strip) {
  std::string label(LabelOf(strip.metric));
  if (strip.gpu.has_value()) label += ", GPU " + std::to_string(*strip.gpu);
  json.BeginObject().Field("metric", strip.metric).Field("label", label).Field("unit", UnitOf(strip));
  json.Key("values").BeginArray();
  for (const std::optional<double>& value : strip.strip.values) json.Value(value);
  json.EndArray().EndObject();
}

void WriteWarning(JsonWriter& json, const model::Warning& warning) {
  const auto micros = [](int64_t ns) { return ns / kNanosPerMicro; };
  const auto hex = [](const Id128& id) { return id.ToHex(); };
  json.BeginObject().Field("id", warning.warning.ToHex()).Field("indicator", warning.indicator);
  json.Field("device", warning.device.transform(hex)).Field("from_us", micros(warning.start_ns));
  json.Field("to_us", warning.end_ns.transform(micros)).Field("sentence", warning.sentence);
  json.Field("incident", warning.incident.transform(hex));
  json.Field("lead_us", warning.lead_ns.transform(micros)).EndObject();
}

void WriteProgram(JsonWriter& json, const store::UsualSteps& program) {
  json.BeginObject().Field("process", program.process.ToHex()).Field("name", program.name);
  json.Field("pid", program.pid)
      .Field("tid", program.tid)
      .Field("steps", program.steps)
      .Field("step_ns", program.time_ns)
      .Field("between_ns", program.between_ns);
  json.Key("parts").BeginArray();
  for (const store::UsualSteps::Part& part : program.parts)
    json.BeginObject()
        .Field("signal", std::string_view(part.state).substr(std::min(kStep.size(), part.state.size())))
        .Field("label", LabelOf(part.state))
        .Field("time_ns", part.time_ns)
        .Field("sentence", part.sentence)
        .EndObject();
  json.EndArray().Key("kinds").BeginArray();
  for (const model::StepKind& kind : program.kinds)
    json.BeginObject()
        .Field("steps", kind.steps)
        .Field("mean_ns", kind.mean_ns())
        .Field("from_us", kind.first_ns / kNanosPerMicro)
        .Field("to_us", kind.last_ns / kNanosPerMicro)
        .EndObject();
  json.EndArray().EndObject();
}

}  // namespace

std::string IncidentsJson(const store::Incidents& incidents) {
  JsonWriter json;
  json.BeginObject().Field("steps", incidents.steps).Field("omitted", incidents.omitted);
  json.Key("incidents").BeginArray();
  for (const store::IncidentInfo& info : incidents.incidents) {
    const model::Incident& incident = info.incident;
    json.BeginObject().Field("id", incident.incident.ToHex()).Field("process", incident.process.ToHex());
    json.Field("name", info.process_name).Field("pid", info.pid).Field("tid", incident.tid);
    json.Field("from_us", incident.start_ns / kNanosPerMicro);
    json.Field("to_us", incident.end_ns.transform([](int64_t ns) { return ns / kNanosPerMicro; }));
    json.Field("slowdown", incident.slowdown).Field("cause", incident.cause);
    json.Field("confidence", incident.confidence).Field("sentence", incident.sentence);
    json.Field("before_is_later", incident.sentence.contains(model::kBeforeIsLater));
    WriteAll(json, "account", info, kStep);
    WriteAll(json, "causes", info, kCause);
    WriteAll(json, "evidence", info, "");
    if (!info.strips.empty()) {
      const store::Strip& first = info.strips.front().strip;
      json.Field("shown_from_us", first.from_ns / kNanosPerMicro)
          .Field("shown_to_us", first.to_ns / kNanosPerMicro);
    }
    json.Key("strips").BeginArray();
    for (const store::IncidentStrip& strip : info.strips) WriteStrip(json, strip);
    json.EndArray().EndObject();
  }
  json.EndArray().Key("programs").BeginArray();
  for (const store::UsualSteps& program : incidents.programs) WriteProgram(json, program);
  json.EndArray().Key("warnings").BeginArray();
  for (const model::Warning& warning : incidents.warnings) WriteWarning(json, warning);
  json.EndArray().EndObject();
  return json.Take();
}

}  // namespace gpusonde::server
