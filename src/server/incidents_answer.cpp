// SPDX-License-Identifier: Apache-2.0
#include "server/incidents_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "base/printable.h"
#include "base/time.h"

namespace gpusonde::server {
namespace {

// In text, parts of a step that take less are left out.
constexpr double kNoticeableNs = 1e5;
// The API has no times beyond these; in nanoseconds they fit int64.
constexpr int64_t kMaxMicros = (int64_t{1} << 53) - 1;

std::optional<double> NumberOf(const nlohmann::json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

int64_t MicrosOf(const nlohmann::json& value) {
  return std::clamp<int64_t>(value.get<int64_t>(), 0, kMaxMicros);
}

IncidentsAnswer::Incident IncidentOf(const nlohmann::json& json) {
  IncidentsAnswer::Incident incident{.host = json.value("host", ""),
                                     .process_name = json.at("name").get<std::string>(),
                                     .pid = json.at("pid").get<int32_t>(),
                                     .from_us = MicrosOf(json.at("from_us")),
                                     .sentence = json.at("sentence").get<std::string>()};
  if (const auto& to = json.at("to_us"); !to.is_null()) incident.to_us = MicrosOf(to);
  if (const auto account = json.find("account"); account != json.end())
    for (const nlohmann::json& part : *account)
      incident.account.push_back({.label = part.at("label").get<std::string>(),
                                  .before_ns = NumberOf(part.at("before")),
                                  .during_ns = NumberOf(part.at("during"))});
  return incident;
}

std::string Time(int64_t us) { return FormatUtc(us * kNanosPerMicro); }

std::string TextOf(const IncidentsAnswer::Incident& incident) {
  std::string text =
      fmt::format("{} to {}: {}{} (process {})\n  {}\n", Time(incident.from_us),
                  incident.to_us.has_value() ? Time(*incident.to_us) : "now",
                  incident.host.empty() ? "" : Printable(incident.host) + ": ",
                  Printable(incident.process_name), incident.pid, Printable(incident.sentence));
  for (const IncidentsAnswer::Part& part : incident.account) {
    const double before_ns = part.before_ns.value_or(0), during_ns = part.during_ns.value_or(0);
    if (before_ns > kNoticeableNs || during_ns > kNoticeableNs)
      text += fmt::format("    {:>10} → {:>10}  {}\n", fmt::format("{:.1f} ms", before_ns / 1e6),
                          fmt::format("{:.1f} ms", during_ns / 1e6), Printable(part.label));
  }
  return text;
}

}  // namespace

Result<IncidentsAnswer> ParseIncidents(const std::string& text) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    IncidentsAnswer answer{.omitted = json.value("omitted", int64_t{0})};
    if (const auto steps = json.find("steps"); steps != json.end()) answer.steps = steps->get<int64_t>();
    for (const nlohmann::json& incident : json.at("incidents"))
      answer.incidents.push_back(IncidentOf(incident));
    if (const auto programs = json.find("programs"); programs != json.end())
      for (const nlohmann::json& program : *programs)
        for (const nlohmann::json& part : program.at("parts"))
          if (const auto& sentence = part.at("sentence").get_ref<const std::string&>(); !sentence.empty())
            answer.disturbances.push_back({.process_name = program.at("name").get<std::string>(),
                                           .pid = program.at("pid").get<int32_t>(),
                                           .sentence = sentence});
    std::ranges::stable_sort(answer.incidents, {}, &IncidentsAnswer::Incident::from_us);
    if (const auto hosts = json.find("hosts"); hosts != json.end())
      for (const nlohmann::json& host : *hosts) {
        if (const auto& error = host.at("error").get_ref<const std::string&>(); error.empty())
          ++answer.hosts;
        else
          answer.errors.emplace_back(host.at("name").get<std::string>(), error);
      }
    return answer;
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the server's answer is not a list of incidents: {}", error.what()));
  }
}

bool IsOverviewOfServe(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto mode = json.is_object() ? json.find("mode") : json.end();
  return mode != json.end() && mode->is_string() && mode->get_ref<const std::string&>() == "serve";
}

std::string ToText(const IncidentsAnswer& answer) {
  std::string text;
  for (const IncidentsAnswer::Disturbance& each : answer.disturbances)
    text += fmt::format("{} (process {}): {}\n", Printable(each.process_name), each.pid,
                        Printable(each.sentence));
  if (answer.incidents.empty() && answer.hosts > 0)
    return text + fmt::format("no incident on {} in the last 24 hours\n", Counted(answer.hosts, "host"));
  if (answer.incidents.empty())
    return text + (answer.steps == 0 ? "no steps were found in the GPU work\n"
                                     : "no incident: no steps were slow\n");
  if (!text.empty()) text += "\n";
  if (answer.omitted > 0) text += fmt::format("{} before these\n\n", Counted(answer.omitted, "incident"));
  for (const IncidentsAnswer::Incident& incident : answer.incidents)
    text += (text.empty() || text.ends_with("\n\n") ? "" : "\n") + TextOf(incident);
  return text;
}

}  // namespace gpusonde::server
