// SPDX-License-Identifier: Apache-2.0
#include "store/queries/usual_steps.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "model/tables/usual_steps.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {

Result<SelectedSteps> ReadUsualSteps(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, ReadTimeRange(store, selection));
  SqlPart counting{
      "SELECT process, tid, count(*), sum(end_ns::DOUBLE - start_ns::DOUBLE), min(start_ns), max(end_ns) "
      "FROM steps WHERE end_ns >= ? AND start_ns < ?",
      {range.from_ns, range.to_ns}};
  counting += AndOfProcesses(selection);
  counting.text += " GROUP BY process, tid, type";
  SelectedSteps steps;
  struct Counted {
    int64_t steps = 0;
    std::vector<model::StepKind> kinds;
  };
  std::map<std::pair<Id128, int64_t>, Counted> counts;
  std::vector<Id128> processes;
  TRY(ForEachRow(store, counting, [&](const Rows& row) {
    Counted& loop = counts[{row.Id(0), row.Int64(1)}];
    loop.steps += row.Int64(2);
    loop.kinds.push_back({.steps = row.Int64(2),
                          .total_ns = row.Float64(3),
                          .first_ns = row.Int64(4),
                          .last_ns = row.Int64(5)});
    processes.push_back(row.Id(0));
    steps.count += row.Int64(2);
  }));
  if (processes.empty()) return steps;
  const SqlPart usual{
      "SELECT process, tid, name, pid, state, time_ns, sentence FROM usual_steps LEFT JOIN processes USING "
      "(process) WHERE process IN (SELECT unnest(?::UUID[])) AND time_ns > 0 "
      "ORDER BY process, tid, time_ns DESC, state",
      {std::move(processes)}};
  std::vector<UsualSteps>& all = steps.programs;
  TRY(ForEachRow(store, usual, [&](const Rows& row) {
    const auto count = counts.find({row.Id(0), row.Int64(1)});
    if (count == counts.end()) return;
    const auto tid = static_cast<int32_t>(row.Int64(1));
    if (all.empty() || all.back().process != row.Id(0) || all.back().tid != tid)
      all.push_back({.process = row.Id(0),
                     .tid = tid,
                     .name = std::string(row.Text(2)),
                     .pid = static_cast<int32_t>(row.Int64(3)),
                     .steps = count->second.steps,
                     .kinds = model::CommonKinds(count->second.kinds, count->second.steps)});
    if (row.Text(4) == model::kBetweenSteps) {
      all.back().between_ns = row.Float64(5);
      return;
    }
    all.back().time_ns += row.Float64(5);
    all.back().parts.push_back({std::string(row.Text(4)), row.Float64(5), std::string(row.Text(6))});
  }));
  std::ranges::stable_sort(all, std::greater(), [](const UsualSteps& each) {
    return static_cast<double>(each.steps) * each.time_ns;
  });
  return steps;
}

}  // namespace gpusonde::store
