// SPDX-License-Identifier: Apache-2.0
#include "diagnose/incident_tracker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "base/time.h"
#include "diagnose/cause.h"
#include "diagnose/explain.h"
#include "diagnose/incident_table.h"
#include "diagnose/rank.h"

namespace gpusonde::diagnose {

namespace {

// Whether the incident is a single step that the program's end cut short, and that was hardly a step:
// programs write results, compute statistics and free memory before they exit. What stopped a program, or
// made it end, remains.
bool IsLastPhase(const model::Incident& incident, const Situation& situation) {
  constexpr std::array kRemain = {CauseId::kGpuFault, CauseId::kHang, CauseId::kStopped, CauseId::kStraggler};
  return incident.end_ns.has_value() && situation.unfinished && situation.steps == 1 &&
         *incident.end_ns - incident.start_ns < kIncidentTable.report.last_phase_ns &&
         std::ranges::find(kRemain, incident.cause, NameOf) == kRemain.end();
}

int64_t LastedNs(const model::Incident& incident, int64_t now_ns) {
  return incident.end_ns.value_or(now_ns) - incident.start_ns;
}

double LostNs(const model::Incident& incident, const Situation& situation, int64_t now_ns) {
  return static_cast<double>(LastedNs(incident, now_ns)) * (1 - 1 / situation.slowdown);
}

bool IsNotable(const model::Incident& incident, const Situation& situation, int64_t now_ns) {
  const auto& table = kIncidentTable.report;
  if (IsLastPhase(incident, situation)) return false;
  if (incident.end_ns.has_value() && situation.slowdown < table.ended_slowdown) return false;
  const int64_t lasted_ns = LastedNs(incident, now_ns);
  const double lost_ns = LostNs(incident, situation, now_ns);
  const auto cost = [&](double least_ns) { return !incident.end_ns.has_value() || lost_ns >= least_ns; };
  const bool likely =
      incident.cause != kAbstain && incident.confidence >= table.likely && cost(table.likely_lost_ns);
  const bool large = situation.slowdown >= table.large_slowdown && cost(table.large_lost_ns);
  return likely || situation.unfinished || large ||
         (situation.slowdown >= table.notable_slowdown && lasted_ns >= table.small_ns) ||
         lasted_ns >= table.notable_ns;
}

// Whether it is worth a line in the log and a message, rather than being shown to whoever looks.
bool IsWorthNews(const model::Incident& incident, const Situation& situation, int64_t now_ns) {
  const auto& table = kIncidentTable.report;
  return situation.unfinished || situation.slowdown >= table.large_slowdown ||
         LostNs(incident, situation, now_ns) >= table.news_lost_ns;
}

}  // namespace

Report IncidentTracker::NewReport(int64_t onset_ns, int64_t now_ns) const {
  for (const model::Incident& earlier : earlier_) {
    if (std::abs(earlier.start_ns - onset_ns) > kIncidentTable.report.same_onset_ns) continue;
    model::Incident again = earlier;
    again.end_ns.reset();
    return {.incident = std::move(again), .is_notable = true};
  }
  model::Incident incident{.process = process_, .tid = tid_, .start_ns = onset_ns, .seen_ns = now_ns};
  IdHasher id("incident");
  id.Add(process_).Add(static_cast<uint64_t>(onset_ns));
  if (tid_ != 0) id.Add(static_cast<uint64_t>(tid_));
  incident.incident = id.Finish();
  return {.incident = std::move(incident)};
}

bool IncidentTracker::WasReported(const TimeRange& when) const {
  return std::ranges::any_of(earlier_, [&](const model::Incident& incident) {
    return incident.start_ns < when.to_ns && incident.end_ns.value_or(INT64_MAX) > when.from_ns;
  });
}

void IncidentTracker::Begin(int64_t onset_ns, int64_t now_ns, std::string anchor) {
  onset_ns_ = onset_ns;
  unexplained_since_ns_ = now_ns;
  reports_.push_back(NewReport(onset_ns, now_ns));
  // An earlier run has reported what it continues.
  news_cause_ = reports_.back().is_notable ? reports_.back().incident.cause : "";
  reports_.back().anchor = std::move(anchor);
  if (reports_.size() > kIncidentTable.report.max) reports_.erase(reports_.begin());
}

bool IncidentTracker::IsUpdateDue(int64_t time_ns) const {
  const bool explained = reports_.back().incident.cause != kAbstain;
  const bool young = time_ns - onset_ns_ < kIncidentTable.report.young_ns;
  return time_ns - updated_ns_ >=
         (young && !explained ? kIncidentTable.report.young_update_ns : kIncidentTable.report.update_ns);
}

int64_t IncidentTracker::last_end_ns() const {
  return reports_.empty() ? 0 : reports_.back().incident.end_ns.value_or(0);
}

bool IncidentTracker::Explain(const Situation& situation, const model::Process* process,
                              std::optional<int64_t> end_ns, int64_t now_ns) {
  Report& report = reports_.back();
  const std::string cause_before = report.incident.cause;
  if (end_ns.has_value()) report.incident.end_ns = end_ns;
  report.process_name = process == nullptr ? "" : process->name;
  report.pid = process == nullptr ? 0 : process->pid;
  report.causes = Rank(situation);
  if (const std::optional<CauseId> named = FindCause(cause_before); named.has_value())
    KeepFirst(*named, report.causes);
  report.incident.slowdown = situation.slowdown;
  Explanation explanation = diagnose::Explain(situation, report.causes, report.incident.start_ns);
  report.incident.cause = explanation.cause.transform(NameOf).value_or(kAbstain);
  report.incident.confidence = explanation.confidence;
  report.incident.sentence = std::move(explanation.sentence);
  report.evidence = std::move(explanation.evidence);
  for (model::Evidence& evidence : report.evidence) evidence.incident = report.incident.incident;
  const bool is_other = report.incident.cause != cause_before;
  if (is_other)
    report.incident.named_ns = report.incident.cause == kAbstain ? std::nullopt : std::optional(now_ns);
  const bool was_notable = report.is_notable;
  const bool is_notable = IsNotable(report.incident, situation, now_ns);
  report.is_notable = was_notable || is_notable;
  report.incident.withdrawn = report.incident.end_ns.has_value() && !is_notable;
  if (report.is_notable && !was_notable) {
    report.incident.seen_ns = now_ns;
    if (report.incident.named_ns.has_value()) report.incident.named_ns = now_ns;
  }
  if (is_other && !cause_before.empty()) unexplained_since_ns_ = now_ns;
  const bool is_announced = !news_cause_.empty();
  return report.is_notable && (is_announced || IsWorthNews(report.incident, situation, now_ns)) &&
         IsNews(report, now_ns);
}

bool IncidentTracker::IsNews(const Report& report, int64_t now_ns) {
  const model::Incident& incident = report.incident;
  if (!incident.end_ns.has_value()) {
    if (incident.cause == news_cause_) return false;
    if (incident.cause == kAbstain && now_ns - unexplained_since_ns_ < kIncidentTable.report.unexplained_ns)
      return false;
  }
  news_cause_ = incident.cause;
  return true;
}

}  // namespace gpusonde::diagnose
