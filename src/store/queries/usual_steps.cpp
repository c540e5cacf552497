// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usual_steps.h"

#include <algorithm>
#include <functional>

#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {

Result<std::vector<UsualSteps>> ReadUsualSteps(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  SqlPart query{
      "WITH counts AS (SELECT process, count(*) AS steps FROM steps WHERE end_ns >= ? AND start_ns < ?",
      {range.from_ns, range.to_ns}};
  query += AndOfProcesses(selection);
  query.text +=
      " GROUP BY process) SELECT process, name, pid, counts.steps, state, time_ns, sentence FROM usual_steps "
      "JOIN counts USING (process) LEFT JOIN processes USING (process) "
      "WHERE time_ns > 0 ORDER BY process, time_ns DESC, state";
  std::vector<UsualSteps> all;
  TRY(ForEachRow(store, query, [&](const Rows& row) {
    if (all.empty() || all.back().process != row.Id(0))
      all.push_back({.process = row.Id(0),
                     .name = std::string(row.Text(1)),
                     .pid = static_cast<int32_t>(row.Int64(2)),
                     .steps = row.Int64(3)});
    all.back().time_ns += row.Float64(5);
    all.back().parts.push_back({std::string(row.Text(4)), row.Float64(5), std::string(row.Text(6))});
  }));
  std::ranges::stable_sort(all, std::greater(), [](const UsualSteps& each) {
    return static_cast<double>(each.steps) * each.time_ns;
  });
  return all;
}

}  // namespace gpusonde::store
