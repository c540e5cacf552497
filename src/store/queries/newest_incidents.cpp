// SPDX-License-Identifier: Apache-2.0
#include "store/queries/newest_incidents.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "store/queries/run_ends.h"

namespace gpusonde::store {
namespace {

// Incidents whose end is not stored, because they last or because their run ended before them.
struct OpenIncidents {
  std::vector<std::pair<Id128, std::optional<int64_t>>> ends;  // empty: it lasts
  std::vector<Id128> ended_before;                             // the range

  std::optional<int64_t> EndOf(const Id128& incident) const {
    const auto found = std::ranges::find(ends, incident, &std::pair<Id128, std::optional<int64_t>>::first);
    return found == ends.end() ? std::nullopt : found->second;
  }
};

Result<OpenIncidents> ReadOpenIncidents(Store& store, const TimeRange& range) {
  const std::vector<Parameter> parameters = {range.to_ns};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("SELECT incident, coalesce(seen_ns, start_ns) FROM incidents "
                               "WHERE end_ns IS NULL AND start_ns < ?",
                               parameters));
  OpenIncidents open;
  std::vector<int64_t> reported_ns;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) break;
    open.ends.emplace_back(rows->Id(0), std::nullopt);
    reported_ns.push_back(rows->Int64(1));
  }
  if (open.ends.empty()) return open;
  ASSIGN_OR_RETURN(const RunEnds runs, RunEnds::Read(store));
  for (size_t i = 0; i < reported_ns.size(); ++i) {
    open.ends[i].second = runs.EndAfter(reported_ns[i]);
    if (open.ends[i].second.value_or(range.to_ns) < range.from_ns)
      open.ended_before.push_back(open.ends[i].first);
  }
  return open;
}

}  // namespace

Result<NewestIncidents> ReadNewestIncidents(Store& store, const TimeRange& range, int64_t most) {
  ASSIGN_OR_RETURN(const OpenIncidents open, ReadOpenIncidents(store, range));
  const std::vector<Parameter> parameters = {range.to_ns, range.to_ns, range.from_ns, open.ended_before,
                                             most};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          "SELECT incident, process, incidents.start_ns, end_ns, slowdown, cause, confidence, sentence, "
          "coalesce(name, ''), coalesce(pid, 0)::BIGINT, count(*) OVER () "
          "FROM incidents LEFT JOIN processes USING (process) "
          "WHERE incidents.start_ns < ? AND coalesce(end_ns, ?) >= ? "
          "AND incident NOT IN (SELECT unnest(?::UUID[])) "
          "ORDER BY incidents.start_ns DESC, incident LIMIT ?",
          parameters));
  NewestIncidents newest;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return newest;
    model::Incident incident{.incident = rows->Id(0),
                             .process = rows->Id(1),
                             .start_ns = rows->Int64(2),
                             .slowdown = rows->Float64(4),
                             .cause = std::string(rows->Text(5)),
                             .confidence = rows->Float64(6),
                             .sentence = std::string(rows->Text(7))};
    incident.end_ns = rows->IsNull(3) ? open.EndOf(incident.incident) : rows->Int64(3);
    newest.lines.push_back(
        {std::move(incident), std::string(rows->Text(8)), static_cast<int32_t>(rows->Int64(9))});
    newest.count = rows->Int64(10);
  }
}

}  // namespace gpusonde::store
