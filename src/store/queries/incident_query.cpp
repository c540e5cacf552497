// SPDX-License-Identifier: Apache-2.0
#include "store/queries/incident_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "base/time.h"
#include "model/metric_catalogue.h"
#include "store/sql/process_sql.h"
#include "store/sql/time_range.h"
#include "store/table_rows.h"

namespace gpusonde::store {
namespace {

using model::Metric;

// What is shown before and after an incident: as much as it lasted, within these.
constexpr int64_t kMinAroundNs = 5 * kNanosPerSecond;
constexpr int64_t kMaxAroundNs = 60 * kNanosPerSecond;

// The signals that are shown, of the program's threads and of its cgroup.
constexpr std::array kShownIncidents = {Metric::kThreadRunning, Metric::kThreadRunQueue,
                                        Metric::kThreadBlockedIo, Metric::kThreadInterrupted,
                                        Metric::kCgroupThrottled};

Strip EmptyStrip(const TimeRange& range, int buckets) {
  return {range.from_ns, range.to_ns, std::vector<std::optional<double>>(static_cast<size_t>(buckets))};
}

// Rows of bucket and value into a strip.
Status Fill(Store& store, const std::string& sql, std::span<const Parameter> parameters, Strip& strip) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(sql, parameters));
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return {};
    const int64_t bucket = rows->Int64(0);
    if (bucket >= 0 && bucket < std::ssize(strip.values))
      strip.values[static_cast<size_t>(bucket)] = rows->Float64(1);
  }
}

Result<std::vector<IncidentStrip>> ReadStrips(Store& store, const Id128& process, const TimeRange& range,
                                              int buckets) {
  const auto bucket_ns = static_cast<double>(range.to_ns - range.from_ns) / buckets;
  std::vector<IncidentStrip> strips;
  IncidentStrip steps{"step", EmptyStrip(range, buckets)};
  const std::vector<Parameter> of_steps = {range.from_ns, bucket_ns, process, range.from_ns, range.to_ns};
  TRY(Fill(store,
           "SELECT floor((end_ns - ?) / ?)::BIGINT AS bucket, avg(end_ns - start_ns)::DOUBLE FROM steps "
           "WHERE process = ? AND end_ns >= ? AND end_ns < ? GROUP BY bucket",
           of_steps, steps.strip));
  strips.push_back(std::move(steps));
  for (const Metric metric : kShownIncidents) {
    const std::string name(model::InfoOf(metric).name);
    IncidentStrip strip{name, EmptyStrip(range, buckets)};
    const std::vector<Parameter> parameters = {
        range.from_ns, bucket_ns, bucket_ns, name, process, range.from_ns - kNanosPerSecond, range.to_ns};
    TRY(Fill(
        store,
        "SELECT floor((at_ns - ?) / ?)::BIGINT AS bucket, sum(value) / ? FROM ("
        "SELECT start_ns + (unnest(range(len(\"values\"))) * bucket_ns) AS at_ns, unnest(\"values\") AS "
        "value "
        "FROM signals WHERE metric = ? AND process = ? AND start_ns >= ? AND start_ns < ?) GROUP BY bucket",
        parameters, strip.strip));
    if (std::ranges::any_of(strip.strip.values,
                            [](const auto& value) { return value.has_value() && *value > 0; }))
      strips.push_back(std::move(strip));
  }
  return strips;
}

TimeRange Around(const model::Incident& incident, int64_t now_ns) {
  const int64_t start_ns = BoundTime(incident.start_ns);
  const int64_t end_ns = std::max(BoundTime(incident.end_ns.value_or(now_ns)), start_ns + 1);
  const int64_t around_ns = std::clamp(end_ns - start_ns, kMinAroundNs, kMaxAroundNs);
  return {start_ns - around_ns, incident.end_ns.has_value() ? end_ns + around_ns : end_ns};
}

}  // namespace

Result<Incidents> ReadIncidents(Store& store, const model::Selection& selection, int buckets, int64_t most) {
  if (buckets < 1)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("{} buckets; at least one is needed", buckets));
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  Incidents read;
  SqlPart where{"WHERE start_ns < ? AND coalesce(end_ns, ?) >= ?", {range.to_ns, range.to_ns, range.from_ns}};
  where += AndOfProcesses(selection);
  ASSIGN_OR_RETURN(
      std::vector<model::Incident> incidents,
      ReadTable(store, model::kIncidents, where.text + " ORDER BY start_ns DESC", where.parameters));
  read.omitted = std::max<int64_t>(std::ssize(incidents) - most, 0);
  incidents.resize(std::min(incidents.size(), static_cast<size_t>(std::max<int64_t>(most, 0))));
  for (model::Incident& incident : incidents) {
    IncidentInfo info{.incident = std::move(incident)};
    const std::vector<Parameter> of_incident = {info.incident.incident};
    ASSIGN_OR_RETURN(info.evidence,
                     ReadTable(store, model::kEvidence, "WHERE incident = ? ORDER BY signal", of_incident));
    const std::vector<Parameter> of_process = {info.incident.process};
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> process,
                     store.Query("SELECT name, pid FROM processes WHERE process = ?", of_process));
    ASSIGN_OR_RETURN(const bool known, process->Next());
    if (known) {
      info.process_name = process->Text(0);
      info.pid = static_cast<int32_t>(process->Int64(1));
    }
    ASSIGN_OR_RETURN(info.strips,
                     ReadStrips(store, info.incident.process, Around(info.incident, range.to_ns), buckets));
    read.incidents.push_back(std::move(info));
  }
  SqlPart counting{"SELECT count(*) FROM steps WHERE end_ns >= ? AND start_ns < ?",
                   {range.from_ns, range.to_ns}};
  counting += AndOfProcesses(selection);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> steps, store.Query(counting.text, counting.parameters));
  ASSIGN_OR_RETURN(const bool counted, steps->Next());
  if (counted) read.steps = steps->Int64(0);
  const std::vector<Parameter> of_warnings = {range.to_ns, range.to_ns, range.from_ns, most};
  ASSIGN_OR_RETURN(read.warnings,
                   ReadTable(store, model::kWarnings,
                             "WHERE start_ns < ? AND coalesce(end_ns, ?) >= ? ORDER BY start_ns DESC LIMIT ?",
                             of_warnings));
  return read;
}

}  // namespace gpusonde::store
