// SPDX-License-Identifier: Apache-2.0
#include "store/queries/incident_query.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>

#include "base/time.h"
#include "store/queries/profile_query.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"
#include "store/table_rows.h"

namespace gpusonde::store {
namespace {

// What is shown before and after an incident: as much as it lasted, within these.
constexpr int64_t kMinAroundNs = 5 * kNanosPerSecond;
constexpr int64_t kMaxAroundNs = 60 * kNanosPerSecond;

TimeRange TimeOf(const model::Incident& incident, int64_t now_ns) {
  const int64_t start_ns = BoundTime(incident.start_ns);
  return {start_ns, std::max(BoundTime(incident.end_ns.value_or(now_ns)), start_ns + 1)};
}

TimeRange Around(const TimeRange& time, bool has_ended) {
  const int64_t around_ns = std::clamp(time.to_ns - time.from_ns, kMinAroundNs, kMaxAroundNs);
  return {time.from_ns - around_ns, has_ended ? time.to_ns + around_ns : time.to_ns};
}

// The ids, each once, as the list of a statement.
std::vector<Parameter> DistinctIds(std::vector<Id128> ids) {
  std::ranges::sort(ids);
  ids.erase(std::ranges::unique(ids).begin(), ids.end());
  return {std::move(ids)};
}

Status AddEvidence(Store& store, std::vector<IncidentInfo>& incidents) {
  if (incidents.empty()) return {};
  std::map<Id128, IncidentInfo*> by_id;
  std::vector<Id128> ids;
  for (IncidentInfo& info : incidents) {
    by_id[info.incident.incident] = &info;
    ids.push_back(info.incident.incident);
  }
  return ForEachRow(store, model::kEvidence, "WHERE incident IN (SELECT unnest(?::UUID[])) ORDER BY signal",
                    DistinctIds(std::move(ids)), [&](model::Evidence& evidence) {
                      by_id.at(evidence.incident)->evidence.push_back(std::move(evidence));
                    });
}

Status AddProcesses(Store& store, std::vector<IncidentInfo>& incidents) {
  if (incidents.empty()) return {};
  std::vector<Id128> ids;
  for (const IncidentInfo& info : incidents) ids.push_back(info.incident.process);
  const SqlPart sql{"SELECT process, name, pid FROM processes WHERE process IN (SELECT unnest(?::UUID[]))",
                    DistinctIds(std::move(ids))};
  return ForEachRow(store, sql, [&](const Rows& row) {
    for (IncidentInfo& info : incidents) {
      if (info.incident.process != row.Id(0)) continue;
      info.process_name = row.Text(1);
      info.pid = static_cast<int32_t>(row.Int64(2));
    }
  });
}

// `now_ns` is the end of the data.
Status AddStrips(Store& store, int64_t now_ns, int buckets, std::vector<IncidentInfo>& incidents) {
  if (incidents.empty()) return {};
  ASSIGN_OR_RETURN(const std::vector<GpuDevice> devices, ReadDevices(store));
  for (IncidentInfo& info : incidents) {
    const TimeRange time = TimeOf(info.incident, now_ns);
    const TimeRange shown = Around(time, info.incident.end_ns.has_value());
    ASSIGN_OR_RETURN(info.strips, ReadIncidentStrips(store.Within(shown), info.incident.process,
                                                     info.incident.tid, devices, shown, time, buckets));
  }
  return {};
}

}  // namespace

Result<Incidents> ReadIncidents(Store& store, const model::Selection& selection, int buckets, int64_t most) {
  if (buckets != 0) TRY(CheckBuckets(buckets));
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  Incidents read;
  SqlPart where{"WHERE NOT withdrawn AND start_ns < ? AND coalesce(end_ns, ?) >= ?",
                {range.to_ns, range.to_ns, range.from_ns}};
  where += AndOfProcesses(selection);
  ASSIGN_OR_RETURN(
      std::vector<model::Incident> incidents,
      ReadTable(store, model::kIncidents, where.text + " ORDER BY start_ns DESC", where.parameters));
  read.omitted = std::max<int64_t>(std::ssize(incidents) - most, 0);
  incidents.resize(std::min(incidents.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  for (model::Incident& incident : incidents) read.incidents.push_back({.incident = std::move(incident)});
  TRY(AddEvidence(store, read.incidents));
  TRY(AddProcesses(store, read.incidents));
  if (buckets != 0) TRY(AddStrips(store, range.to_ns, buckets, read.incidents));
  ASSIGN_OR_RETURN(SelectedSteps steps, ReadUsualSteps(store.Within(range), selection));
  read.steps = steps.count;
  read.programs = std::move(steps.programs);
  read.programs.resize(std::min(read.programs.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  const std::vector<Parameter> of_warnings = {range.to_ns, range.to_ns, range.from_ns, most};
  ASSIGN_OR_RETURN(read.warnings,
                   ReadTable(store, model::kWarnings,
                             "WHERE start_ns < ? AND coalesce(end_ns, ?) >= ? ORDER BY start_ns DESC LIMIT ?",
                             of_warnings));
  return read;
}

}  // namespace gpusonde::store
