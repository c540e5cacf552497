// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "base/json_writer.h"
#include "fleet/simulator/simulator.h"

namespace gpusonde::fleet {
namespace {

std::string_view Name(ReportKind kind) { return kind == ReportKind::kMasked ? "masks" : "bfv"; }

int64_t Whole(uint64_t number) { return static_cast<int64_t>(number); }

// Null of none.
std::optional<double> Share(uint64_t part, uint64_t all) {
  if (all == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(all);
}

void WriteParameters(JsonWriter& json, const Simulated& simulated) {
  const Parameters& p = simulated.parameters;
  json.BeginObject()
      .Field("devices", Whole(p.devices))
      .Field("hours", Whole(p.hours))
      .Field("seed", Whole(p.seed))
      .Field("applications", Whole(p.applications))
      .Field("unknown_applications", Whole(p.unknown_applications))
      .Field("unknown_share", p.unknown_share)
      .Field("zipf", p.zipf)
      .Field("load", p.load)
      .Field("job_hours", p.job_hours)
      .Field("churn", p.churn)
      .Field("groups", Whole(p.groups))
      .Field("cohorts", Whole(p.cohorts))
      .Field("decryptors", Whole(p.decryptors))
      .Field("min_reports", Whole(p.min_reports))
      .Field("sigma", Whole(p.sigma))
      .Field("epsilon", p.epsilon)
      .Field("delta", p.delta)
      .Field("cheats", Whole(p.cheats))
      .Field("dead_hour", p.dead_hour.has_value() ? std::optional(Whole(*p.dead_hour)) : std::nullopt)
      .Field("look_kernels", Whole(p.look_kernels))
      .Field("node_cores", Whole(p.node_cores))
      .Field("servers", Whole(p.servers));
  json.Key("streams").BeginArray();
  for (const std::string& stream : simulated.streams) json.Value(stream);
  json.EndArray().EndObject();
}

void WriteHour(JsonWriter& json, const Hour& hour) {
  json.BeginObject()
      .Field("devices", Whole(hour.devices))
      .Field("enrolled", Whole(hour.enrolled))
      .Field("busy_share", hour.busy_share);
  json.Key("reports").BeginObject();
  for (size_t i = 0; i < kVerdicts; ++i)
    json.Field(fleet::Name(static_cast<Verdict>(i)), Whole(hour.verdicts[i]));
  json.EndObject()
      .Field("lists", Whole(hour.lists))
      .Field("lists_too_small", Whole(hour.lists_too_small))
      .Field("lists_unanswered", Whole(hour.lists_unanswered))
      .Field("lists_refused", Whole(hour.lists_refused))
      .Field("expelled", Whole(hour.expelled))
      .Field("expelled_honest", Whole(hour.expelled_honest))
      .Field("sampled_coverage", hour.sampled_coverage)
      .Field("released_coverage", hour.released_coverage)
      .Field("released_falsely", Whole(hour.released_falsely))
      .EndObject();
}

void WriteIdentification(JsonWriter& json, const Identification& found) {
  json.BeginObject()
      .Field("known", Whole(found.known))
      .Field("known_right", Whole(found.known_right))
      .Field("known_wrong", Whole(found.known_wrong))
      .Field("known_right_share", Share(found.known_right, found.known))
      .Field("unknown", Whole(found.unknown))
      .Field("unknown_right", Whole(found.unknown_right))
      .Field("unknown_right_share", Share(found.unknown_right, found.unknown))
      .Field("private_queries", Whole(found.private_queries))
      .Field("private_agreed", Whole(found.private_agreed))
      .Field("signatures", Whole(found.signatures))
      .Field("signatures_true", Whole(found.signatures_true))
      .EndObject();
}

void WriteLatency(JsonWriter& json, std::string_view key, const Latency& latency) {
  json.Key(key)
      .BeginObject()
      .Field("p50_ms", latency.p50_ms)
      .Field("p90_ms", latency.p90_ms)
      .Field("p99_ms", latency.p99_ms)
      .EndObject();
}

void WriteMeasured(JsonWriter& json, const Measured& measured, bool asked) {
  json.BeginObject()
      .Field("wall_s", measured.wall_s)
      .Field("enrol_us", measured.enrol_us)
      .Field("report_us", measured.report_us)
      .Field("accept_us", measured.accept_us)
      .Field("answer_us", measured.answer_us)
      .Field("look_us", measured.look_us)
      .Field("match_us", measured.match_us)
      .Field("query_us", measured.query_us)
      .Field("query_server_us", measured.query_server_us)
      .Field("pipeline_s", measured.pipeline_s)
      .Field("release_s", measured.release_s)
      .Field("device_share", asked ? std::optional(measured.device_share) : std::nullopt)
      .Field("device_share_public", measured.device_share_public);
  WriteLatency(json, "report_latency", measured.report_latency);
  WriteLatency(json, "query_latency", measured.query_latency);
  json.Field("servers_busy", measured.servers_busy).EndObject();
}

void WriteRun(JsonWriter& json, const Run& run) {
  json.BeginObject()
      .Field("reports", Name(run.kind))
      .Field("report_bytes", Whole(run.report_bytes))
      .Field("query_bytes", Whole(run.query_bytes))
      .Field("answer_bytes", Whole(run.answer_bytes));
  json.Key("hours").BeginArray();
  for (const Hour& hour : run.hours) WriteHour(json, hour);
  json.EndArray();
  json.Key("at_epsilon").BeginArray();
  for (const AtEpsilon& point : run.at_epsilon)
    json.BeginObject()
        .Field("epsilon", point.epsilon)
        .Field("sigma", Whole(point.sigma))
        .Field("released_coverage", point.released_coverage)
        .EndObject();
  json.EndArray().Key("identification");
  WriteIdentification(json, run.identification);
  json.Key("error")
      .BeginObject()
      .Field("slots", Whole(run.error.slots))
      .Field("largest_before_noise", Whole(run.error.largest_before_noise))
      .Field("largest_deviations", run.error.largest_deviations)
      .Field("within_two_deviations", run.error.within_two_deviations)
      .EndObject();
  json.Key("budget")
      .BeginObject()
      .Field("epsilon_window", run.budgets.epsilon_window)
      .Field("epsilon_spent", run.budgets.epsilon_spent)
      .Field("windows", Whole(run.budgets.windows))
      .Field("windows_left", Whole(run.budgets.windows_left))
      .EndObject();
  json.Key("measured");
  WriteMeasured(json, run.measured, run.identification.private_queries > 0);
  json.EndObject();
}

}  // namespace

std::string ToJson(const Simulated& simulated) {
  JsonWriter json;
  json.BeginObject().Field("version", 1).Field("stopped", simulated.stopped).Key("parameters");
  WriteParameters(json, simulated);
  json.Key("runs").BeginArray();
  for (const Run& run : simulated.runs) WriteRun(json, run);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

}  // namespace gpusonde::fleet
