// SPDX-License-Identifier: Apache-2.0
#include "store/queries/gpu_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "store/rollups/pack_sums.h"
#include "store/rollups/windows.h"
#include "store/rollups/work_sums.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/saturated_sum.h"
#include "store/sql/time_range.h"

namespace gpusonde::store {

Result<TimeRange> WorkRange(Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(TimeRange range, ReadTimeRange(store, selection));
  return TimeRange{std::max<int64_t>(range.from_ns, 0), range.to_ns};
}

SqlPart WorkOwners(Store& store, const model::Selection& selection, const TimeRange& range) {
  SqlPart owners;
  std::string_view separator;
  constexpr std::array kLevels = {kHourOfWork, kMinuteOfWork};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kLevels)) {
    owners.text +=
        fmt::format("{}SELECT DISTINCT device, process FROM ", std::exchange(separator, " UNION "));
    if (piece.level.has_value())
      owners += SumsOfWindows(selection, piece.range, piece.level->length_ns).InBrackets();
    else
      owners += GpuWorkSpans(selection, piece.range, WorkIn::kRunsIn);
  }
  return owners;
}

Result<std::map<Id128, std::vector<TimeRange>>> ReadObservedTimesByProcess(Store& store,
                                                                           const model::Selection& selection,
                                                                           const TimeRange& range) {
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, ReadRuns(store));
  SqlPart sessions{"SELECT process, start_ns, end_ns FROM ", {}};
  sessions += GpuSessions(selection, range);
  sessions.text += " AS sessions ORDER BY start_ns";
  std::map<Id128, std::vector<TimeRange>> by_process;
  TRY(ForEachRow(store, sessions, [&](const Rows& row) {
    AppendToUnion({row.Int64(1), row.Int64(2)}, by_process[row.Id(0)]);
  }));
  for (auto& [process, times] : by_process) {
    times = Intersect(times, std::vector{range});
    if (!runs.empty()) times = Intersect(times, runs);
  }
  return by_process;
}

Status ForEachWorkSum(Store& store, const model::Selection& selection, const TimeRange& range,
                      const std::function<void(const WorkSum&)>& on_sum) {
  SqlPart sums{fmt::format("SELECT process, device, stream, {} AS kernels, {} AS busy_ns FROM (",
                           SaturatedSum("CASE WHEN starts_with(name, '[mem') THEN 0 ELSE count END"),
                           SaturatedSum("duration_ns")),
               {}};
  std::string_view separator;
  constexpr std::array kLevels = {kHourOfWork, kMinuteOfWork};
  for (const TimePiece& piece : PiecesOf(range, store.gpu_windows(), kLevels)) {
    sums.text +=
        fmt::format("{}SELECT process, device, stream, name, ", std::exchange(separator, " UNION ALL "));
    if (piece.level.has_value()) {
      sums.text += "count, duration_ns FROM ";
      sums += SumsOfWindows(selection, piece.range, piece.level->length_ns).InBrackets();
      sums.text += " WHERE part <> 'sampled'";
    } else {
      sums.text += "count(*) AS count, sum(end_ns - start_ns) AS duration_ns FROM ";
      sums += GpuWork(selection, piece.range, WorkIn::kStartsIn, Packs::kNone);
      sums.text += " GROUP BY process, device, stream, name";
      WorkSummer packed(/*sketches=*/false);
      TRY(AddPacks(Asking(store), selection, piece.range, "", packed));
      for (const model::KernelWindow& row : packed.Rows())
        on_sum({row.process, row.device, row.stream.value_or(0), row.count, row.duration_ns});
    }
  }
  if (separator.empty()) return {};
  sums.text += ") GROUP BY process, device, stream";
  return ForEachRow(store, sums, [&](const Rows& row) {
    on_sum({row.Id(0), row.Id(1), row.Int64(2), row.Int64(3), row.Int64(4)});
  });
}

Result<std::map<Id128, DeviceTimes>> ReadProcessTimes(Store& store, const model::Selection& selection,
                                                      const TimeRange& slice) {
  std::map<Id128, DeviceTimes> by_process;
  TRY(AddPackedTimes(Asking(store), selection, slice, "", [&](const Id128& process, const Id128& device) {
    return &by_process[process][device];
  }));
  SqlPart work{"SELECT process, device, start_ns, end_ns FROM ", {}};
  work += GpuWork(selection, slice, WorkIn::kRunsIn, Packs::kNone);
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows, store.Query(work.text, work.parameters));
  TRY(AddTimes(*rows, slice, 2, [&](const Rows& row) { return &by_process[row.Id(0)][row.Id(1)]; }));
  for (auto& [process, times] : by_process) MergeTimes(times);
  return by_process;
}

}  // namespace gpusonde::store
