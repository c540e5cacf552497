// SPDX-License-Identifier: Apache-2.0
#include "replay/recall.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

#include "base/time.h"
#include "diagnose/incident_table.h"
#include "model/left_open.h"
#include "replay/replay.h"
#include "store/table_rows.h"

namespace gpusonde::replay {
namespace {

// What is recalled: as much time as a diagnosis keeps the host's signals, and open incidents with the calm
// time before them that they are compared with, unless they are older than this: replaying a minute of 10,000
// kernels a second delays the start.
constexpr int64_t kMaxRecallNs = 300 * kNanosPerSecond;
// Nothing is recalled from a run that ended longer ago: its baselines no longer hold.
constexpr int64_t kForgottenNs = 3'600 * kNanosPerSecond;

// The time to replay; {0, 0} if nothing was recorded lately.
Result<TimeRange> ReadRecalled(store::Store& store, int64_t now_ns,
                               const std::vector<model::Incident>& open) {
  ASSIGN_OR_RETURN(TimeRange range, ReadSpan(store, now_ns - kForgottenNs));
  if (range.to_ns == 0) return range;
  range.to_ns = std::min(range.to_ns, now_ns);
  int64_t from_ns = range.to_ns - diagnose::Diagnosis::kRetentionNs;
  for (const model::Incident& incident : open) {
    const int64_t calm_ns = incident.start_ns - diagnose::kIncidentTable.calm.max_ns;
    if (calm_ns >= range.to_ns - kMaxRecallNs) from_ns = std::min(from_ns, calm_ns);
  }
  range.from_ns = std::max(range.from_ns, from_ns);
  return range;
}

// Replays all programs that may have run since range.from_ns.
Status RecallPrograms(store::Store& store, const TimeRange& range,
                      const std::function<bool(const model::Process&)>& lives,
                      diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto observed, ReadObservedUntil(store, range));
  const auto last_observed = [&](const Id128& process) {
    const auto found = observed.find(process);
    return found == observed.end() ? range.to_ns : found->second;
  };
  const std::vector<store::Parameter> since = {range.from_ns};
  ASSIGN_OR_RETURN(auto processes, store::ReadTable(store, model::kProcesses,
                                                    "WHERE exited_ns IS NULL OR exited_ns >= ?", since));
  for (model::Process& process : processes) {
    if (!process.exited_ns.has_value() && !lives(process)) process.exited_ns = last_observed(process.process);
    diagnosis.Ingest(process);
  }
  ASSIGN_OR_RETURN(const auto containers, store::ReadTable(store, model::kContainers));
  for (const model::Container& container : containers) diagnosis.Ingest(container);
  ASSIGN_OR_RETURN(auto sessions,
                   store::ReadTable(store, model::kGpuSessions,
                                    "WHERE end_ns IS NULL OR end_ns >= ? ORDER BY session", since));
  for (model::GpuSession& session : sessions) {
    if (!session.end_ns.has_value()) session.end_ns = last_observed(session.process);
    if (session.start_ns >= *session.end_ns) continue;  // nothing of it was surely observed
    diagnosis.Ingest(session);
  }
  return {};
}

Status RecallIncidents(store::Store& store, const TimeRange& range, diagnose::Diagnosis& diagnosis) {
  const std::vector<store::Parameter> since = {range.from_ns};
  ASSIGN_OR_RETURN(const auto incidents,
                   store::ReadTable(store, model::kIncidents, "WHERE end_ns IS NULL OR end_ns >= ?", since));
  for (const model::Incident& incident : incidents) diagnosis.Ingest(incident);
  return {};
}

// Writes the ends of incidents that were open when the previous run ended and that no one will end.
Status CloseIncidents(store::Store& store, const TimeRange& range, std::vector<model::Incident> open,
                      const diagnose::Diagnosis& diagnosis) {
  std::map<Id128, model::Incident> recalled;
  for (const diagnose::Report& report : diagnosis.Reports())
    recalled.emplace(report.incident.incident, report.incident);
  model::BatchBuilder<decltype(model::kIncidents)> closed{model::kIncidents};
  for (model::Incident& incident : open) {
    const auto found = recalled.find(incident.incident);
    if (found != recalled.end()) {
      if (found->second.end_ns.has_value()) closed.Append(found->second);
      continue;
    }
    model::EndLeftOpen(incident, range.to_ns);
    closed.Append(incident);
  }
  if (closed.rows() == 0) return {};
  const std::array<model::Batch, 1> batches = {closed.Take()};
  return store.Append(batches);
}

// Writes the ends of warnings that were open when the previous run ended. What they warn of may last: the
// replay has warned of it anew, and ends that warning in time.
Status CloseWarnings(store::Store& store, const TimeRange& range, const diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(std::vector<model::Warning> open,
                   store::ReadTable(store, model::kWarnings, "WHERE end_ns IS NULL ORDER BY start_ns"));
  if (open.empty()) return {};
  model::BatchBuilder<decltype(model::kWarnings)> rows{model::kWarnings};
  for (model::Warning& warning : open) {
    model::EndLeftOpen(warning, range.to_ns);
    rows.Append(warning);
  }
  for (const model::Warning& warning : diagnosis.Warnings())
    if (!warning.end_ns.has_value()) rows.Append(warning);
  const std::array<model::Batch, 1> batches = {rows.Take()};
  return store.Append(batches);
}

}  // namespace

Status Recall(store::Store& store, int64_t now_ns, const std::function<bool(const model::Process&)>& lives,
              diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(std::vector<model::Incident> open,
                   store::ReadTable(store, model::kIncidents, "WHERE end_ns IS NULL ORDER BY start_ns"));
  ASSIGN_OR_RETURN(const TimeRange range, ReadRecalled(store, now_ns, open));
  if (range.to_ns > 0) {
    TRY(RecallPrograms(store, range, lives, diagnosis));
    TRY(RecallIncidents(store, range, diagnosis));
    TRY(ReplayRows(store, range, diagnosis));
  }
  TRY(CloseWarnings(store, range, diagnosis));
  return CloseIncidents(store, range, std::move(open), diagnosis);
}

}  // namespace gpusonde::replay
