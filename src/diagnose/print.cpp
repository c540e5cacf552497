// SPDX-License-Identifier: Apache-2.0
#include "diagnose/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/json_writer.h"
#include "base/printable.h"
#include "base/time.h"
#include "diagnose/causes/words.h"

namespace gpusonde::diagnose {
namespace {

// The text omits states with less time per step, and other causes that explain a smaller share.
constexpr double kNoticeableNs = 1e5, kNoticeableShare = 0.01;

std::string TextOf(const Report& report) {
  const model::Incident& incident = report.incident;
  std::string text = fmt::format("\n{} to {}: {} (process {})\n  {}\n", FormatUtc(incident.start_ns),
                                 incident.end_ns.has_value() ? FormatUtc(*incident.end_ns) : "the end",
                                 Printable(report.process_name), report.pid, Printable(incident.sentence));
  for (const model::Evidence& evidence : report.evidence)
    if (evidence.signal.starts_with("step.") &&
        (evidence.before.value_or(0) > kNoticeableNs || evidence.during.value_or(0) > kNoticeableNs))
      text += fmt::format("    {:>10} → {:>10}  {}\n", Time(evidence.before.value_or(0)),
                          Time(evidence.during.value_or(0)), model::LabelOf(evidence.signal));
  for (size_t i = 1; i < report.causes.size() && i < 4; ++i)
    if (const Candidate& also = report.causes[i]; also.share >= kNoticeableShare)
      text += fmt::format("  also considered: {} ({:.2f}), {:.0f} % of the lost time\n", also.title(),
                          also.confidence, 100 * also.share);
  return text;
}

// "20 ms GPU kernels, 10 ms CPU": the states with a noticeable share of the time, the longest first.
std::string PartsOf(const Account& states) {
  std::vector<std::pair<double, State>> parts;
  for (size_t i = 0; i < kStates; ++i)
    if (states.ns[i] >= kNoticeableShare * states.total())
      parts.emplace_back(states.ns[i], static_cast<State>(i));
  std::ranges::sort(parts, std::greater());
  std::vector<std::string> names;
  for (const auto& [ns, state] : parts)
    names.push_back(fmt::format("{} {}", Time(ns), model::InfoOf(MetricOf(state)).label));
  return fmt::format("{}", fmt::join(names, ", "));
}

// What steps usually do: the largest parts, what precedes them, and what disturbs them all the time.
std::string TextOf(const UsualStep& usual) {
  if (usual.steps == 0) return "";
  const double step_ns = usual.states.total(), between_ns = usual.between.total();
  std::string text = fmt::format("  a step usually takes {}: {}\n", Time(step_ns), PartsOf(usual.states));
  if (between_ns > 0)
    text += fmt::format("  between steps it waits {} ({} of its time): {}\n", Time(between_ns),
                        Percent(between_ns, step_ns + between_ns), PartsOf(usual.between));
  for (const LastingDisturbance& each : usual.disturbances)
    text += fmt::format("  {}\n", Printable(each.sentence));
  return text;
}

// What kinds of steps there are, in the order of their first ones; and since when, if one follows the other.
std::string TextOf(const std::vector<model::StepKind>& kinds) {
  if (kinds.empty()) return "";
  std::vector<std::string> parts;
  int64_t last_ns = 0;
  for (const model::StepKind& kind : kinds) {
    const bool follows = !parts.empty() && kind.first_ns >= last_ns;
    parts.push_back(fmt::format(
        "{}{} of {} ({}{:.0f})", follows ? fmt::format("from {} on ", FormatUtcClock(kind.first_ns)) : "",
        kind.steps, Time(kind.mean_ns()), parts.empty() ? "kernels and copies: " : "", kind.mean_work()));
    last_ns = std::max(last_ns, kind.last_ns);
  }
  return fmt::format("  its steps are of {} kinds: {}\n", kinds.size(), fmt::join(parts, ", "));
}

void WriteKinds(JsonWriter& json, const std::vector<model::StepKind>& kinds) {
  json.BeginArray();
  for (const model::StepKind& kind : kinds)
    json.BeginObject()
        .Field("steps", kind.steps)
        .Field("mean_ns", kind.mean_ns())
        .Field("mean_work", kind.mean_work())
        .Field("first_ns", kind.first_ns)
        .Field("last_ns", kind.last_ns)
        .EndObject();
  json.EndArray();
}

void WriteUsual(JsonWriter& json, const UsualStep& usual) {
  json.BeginObject().Field("steps", usual.steps).Key("ns").BeginObject();
  for (size_t i = 0; i < kStates; ++i)
    if (usual.states.ns[i] > 0)
      json.Field(model::InfoOf(MetricOf(static_cast<State>(i))).name, usual.states.ns[i]);
  json.EndObject().Field("between_ns", usual.between.total()).Key("disturbances").BeginArray();
  for (const LastingDisturbance& each : usual.disturbances)
    json.BeginObject()
        .Field("state", model::InfoOf(MetricOf(each.state)).name)
        .Field("sentence", each.sentence)
        .EndObject();
  json.EndArray().EndObject();
}

bool IsWithdrawn(const Report& report) { return report.incident.withdrawn; }

void WriteIncident(JsonWriter& json, const Report& report) {
  const model::Incident& incident = report.incident;
  json.BeginObject().Field("id", incident.incident.ToHex()).Field("process", report.process_name);
  json.Field("pid", report.pid)
      .Field("tid", incident.tid)
      .Field("start_ns", incident.start_ns)
      .Field("end_ns", incident.end_ns);
  json.Field("slowdown", incident.slowdown).Field("cause", incident.cause);
  json.Field("confidence", incident.confidence).Field("sentence", incident.sentence);
  json.Key("causes").BeginArray();
  for (const Candidate& candidate : report.causes)
    json.BeginObject()
        .Field("cause", candidate.cause->name)
        .Field("confidence", candidate.confidence)
        .Field("share", candidate.share)
        .Field("sentence", candidate.finding.sentence)
        .EndObject();
  json.EndArray().Key("evidence").BeginArray();
  for (const model::Evidence& evidence : report.evidence)
    json.BeginObject()
        .Field("signal", evidence.signal)
        .Field("before", evidence.before)
        .Field("during", evidence.during)
        .Field("score", evidence.score)
        .Field("sentence", evidence.sentence)
        .EndObject();
  json.EndArray().EndObject();
}

// Empty if the incident that it warned of had already begun.
std::string TextOf(const model::Warning& warning) {
  const int64_t lead_ns = warning.lead_ns.value_or(0);
  if (lead_ns < 0) return "";
  return fmt::format("\n{}: warning: {}\n  {}\n", FormatUtc(warning.start_ns), Printable(warning.sentence),
                     warning.lead_ns.has_value()
                         ? fmt::format("{:.1f} s before steps slowed", static_cast<double>(lead_ns) / 1e9)
                         : "no step slowed because of it");
}

void WriteWarning(JsonWriter& json, const model::Warning& warning) {
  const auto hex = [](const Id128& id) { return id.ToHex(); };
  json.BeginObject().Field("id", warning.warning.ToHex()).Field("indicator", warning.indicator);
  json.Field("device", warning.device.transform(hex)).Field("start_ns", warning.start_ns);
  json.Field("end_ns", warning.end_ns).Field("value", warning.value).Field("most", warning.most);
  json.Field("expected_ns", warning.expected_ns).Field("incident", warning.incident.transform(hex));
  json.Field("lead_ns", warning.lead_ns).Field("sentence", warning.sentence).EndObject();
}

}  // namespace

std::string FormatText(const Diagnosis& diagnosis) {
  std::string text;
  for (const Diagnosis::Found& found : diagnosis.FoundSteps()) {
    const std::string steps =
        found.steps == 0 ? "no steps found in its GPU work"
        : found.anchor.empty()
            ? Counted(found.steps, "step") + ", then its GPU work stopped repeating"
            : fmt::format("{}, marked by {}", Counted(found.steps, "step"), Printable(found.anchor));
    const std::string thread = found.tid == 0 ? "" : fmt::format(", thread {}", found.tid);
    text += fmt::format("{} (process {}{}): {}\n", Printable(found.process_name), found.pid, thread, steps);
    if (found.waits_by_habit)
      text += "  its waits between steps, as a server's waits for requests, are not part of them\n";
    if (!found.signals_known)
      text += "  no host signals of it were received: causes on the host are unknown\n";
    text += TextOf(found.usual) + TextOf(found.kinds);
  }
  std::vector<Report> reports = diagnosis.Reports();
  const auto withdrawn = static_cast<int64_t>(std::erase_if(reports, IsWithdrawn));
  if (text.empty() && reports.empty())
    text = "no program with GPU work\n";
  else if (reports.empty() && withdrawn == 0)
    text += "no incident: no steps were slow\n";
  for (const Report& report : reports) text += TextOf(report);
  if (withdrawn > 0)
    text += fmt::format("{}{} without a likely cause, too small or short to tell from chance\n",
                        reports.empty() ? "no incident: " : "\nbesides, ", Counted(withdrawn, "slow-down"));
  for (const model::Warning& warning : diagnosis.Warnings()) text += TextOf(warning);
  return text;
}

std::string FormatJson(const Diagnosis& diagnosis) {
  JsonWriter json;
  json.BeginObject().Field("version", 1).Key("programs").BeginArray();
  for (const Diagnosis::Found& found : diagnosis.FoundSteps()) {
    json.BeginObject()
        .Field("id", found.process.ToHex())
        .Field("process", found.process_name)
        .Field("pid", found.pid)
        .Field("tid", found.tid)
        .Field("steps", found.steps)
        .Field("anchor", found.anchor)
        .Field("signals", found.signals_known)
        .Field("waits_by_habit", found.waits_by_habit)
        .Key("usual");
    WriteUsual(json, found.usual);
    json.Key("kinds");
    WriteKinds(json, found.kinds);
    json.EndObject();
  }
  json.EndArray().Key("incidents").BeginArray();
  std::vector<Report> reports = diagnosis.Reports();
  std::erase_if(reports, IsWithdrawn);
  for (const Report& report : reports) WriteIncident(json, report);
  json.EndArray().Key("warnings").BeginArray();
  for (const model::Warning& warning : diagnosis.Warnings()) WriteWarning(json, warning);
  json.EndArray().EndObject();
  return json.Take() + "\n";
}

std::string FormatNotice(const Report& report, std::string_view machine) {
  JsonWriter json;
  json.BeginObject().Field("version", 1).Field("machine", machine);
  json.Field("state", report.incident.end_ns.has_value() ? "over" : "open");
  json.Field("withdrawn", report.incident.withdrawn).Key("incident");
  WriteIncident(json, report);
  json.EndObject();
  return json.Take();
}

std::string FormatNotice(const model::Warning& warning, std::string_view machine) {
  JsonWriter json;
  json.BeginObject().Field("version", 1).Field("machine", machine).Field("state", "warning");
  json.Key("warning");
  WriteWarning(json, warning);
  json.EndObject();
  return json.Take();
}

}  // namespace gpusonde::diagnose
