// SPDX-License-Identifier: Apache-2.0
#include "store/queries/newest_incidents.h"
#include "store/each_row.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {

Result<NewestIncidents> ReadNewestIncidents(Store& store, const TimeRange& range, int64_t most) {
  const SqlPart sql{
      "SELECT incident, process, incidents.start_ns, end_ns, slowdown, cause, confidence, sentence, "
      "coalesce(name, ''), coalesce(pid, 0)::BIGINT, count(*) OVER () "
      "FROM incidents LEFT JOIN processes USING (process) "
      "WHERE NOT withdrawn AND incidents.start_ns < ? AND coalesce(end_ns, ?) >= ? "
      "ORDER BY incidents.start_ns DESC, incident LIMIT ?",
      {range.to_ns, range.to_ns, range.from_ns, most}};
  NewestIncidents newest;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    model::Incident incident{.incident = row.Id(0),
                             .process = row.Id(1),
                             .start_ns = row.Int64(2),
                             .end_ns = OptionalInt64(row, 3),
                             .slowdown = row.Float64(4),
                             .cause = std::string(row.Text(5)),
                             .confidence = row.Float64(6),
                             .sentence = std::string(row.Text(7))};
    newest.lines.push_back(
        {std::move(incident), std::string(row.Text(8)), static_cast<int32_t>(row.Int64(9))});
    newest.count = row.Int64(10);
  }));
  return newest;
}

}  // namespace gpusonde::store
