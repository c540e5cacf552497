// SPDX-License-Identifier: Apache-2.0
#include "store/queries/own_processes.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "store/each_row.h"
#include "store/sql/sql_part.h"

namespace gpusonde::store {
namespace {

constexpr size_t kMaxProcesses = 1000;

struct Life {
  Id128 process;
  int64_t pid = 0;
  int64_t started_ns = 0;
  std::optional<int64_t> exited_ns;

  // Pids are used again.
  bool CanHaveStarted(const Life& other) const {
    return other.started_ns >= started_ns && other.started_ns <= exited_ns.value_or(INT64_MAX);
  }
};

}  // namespace

Result<std::vector<Id128>> ReadOwnProcesses(Store& store, const Id128& process, const TimeRange& range) {
  const SqlPart sql{
      "SELECT process, pid, parent_pid, started_ns, exited_ns FROM processes WHERE process = ? OR "
      "(started_ns < ? AND (exited_ns IS NULL OR exited_ns >= ?) "
      "AND process NOT IN (SELECT process FROM gpu_sessions))",
      {process, range.to_ns, range.from_ns}};
  std::vector<Life> own;
  std::multimap<int64_t, Life> by_parent;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    const Life life{.process = row.Id(0),
                    .pid = row.Int64(1),
                    .started_ns = row.Int64(3),
                    .exited_ns = OptionalInt64(row, 4)};
    if (life.process == process)
      own.push_back(life);
    else
      by_parent.emplace(row.Int64(2), life);
  }));
  for (size_t i = 0; i < own.size() && own.size() < kMaxProcesses; ++i) {
    const Life parent = own[i];
    auto [child, end] = by_parent.equal_range(parent.pid);
    while (child != end && own.size() < kMaxProcesses) {
      if (!parent.CanHaveStarted(child->second)) {
        ++child;
        continue;
      }
      own.push_back(child->second);
      child = by_parent.erase(child);
    }
  }
  std::vector<Id128> ids = {process};
  for (const Life& each : own)
    if (each.process != process) ids.push_back(each.process);
  return ids;
}

}  // namespace gpusonde::store
