// SPDX-License-Identifier: Apache-2.0
#include "store/queries/newest_incidents.h"

#include <memory>

namespace gpusonde::store {

Result<NewestIncidents> ReadNewestIncidents(Store& store, const TimeRange& range, int64_t most) {
  const std::vector<Parameter> parameters = {range.to_ns, range.to_ns, range.from_ns, most};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(
          "SELECT incident, process, incidents.start_ns, end_ns, slowdown, cause, confidence, sentence, "
          "coalesce(name, ''), coalesce(pid, 0)::BIGINT, count(*) OVER () "
          "FROM incidents LEFT JOIN processes USING (process) "
          "WHERE incidents.start_ns < ? AND coalesce(end_ns, ?) >= ? "
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
    if (!rows->IsNull(3)) incident.end_ns = rows->Int64(3);
    newest.lines.push_back(
        {std::move(incident), std::string(rows->Text(8)), static_cast<int32_t>(rows->Int64(9))});
    newest.count = rows->Int64(10);
  }
}

}  // namespace gpusonde::store
