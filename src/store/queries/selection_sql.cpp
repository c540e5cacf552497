// SPDX-License-Identifier: Apache-2.0
#include "store/queries/selection_sql.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "base/ascii.h"
#include "base/time.h"
#include "store/rollups/sample_windows.h"
#include "store/rollups/windows.h"
#include "store/sql/gpu_idle.h"
#include "store/sql/process_sql.h"

namespace gpusonde::store {
namespace {

// Stacks that show a name which contains the parameter. translate() folds ASCII only, as the filter promises;
// lower() would fold more.
constexpr std::string_view kStacksNamed = R"(
  WITH frames AS (
    SELECT location, unnest(functions) AS function FROM raw.locations
  ), names AS (
    SELECT frames.location, functions.name FROM frames JOIN raw.functions USING (function)
    UNION ALL
    SELECT location, CASE WHEN kind = 'jit' THEN '[JIT code]' WHEN binaries.binary_id IS NULL THEN '[unknown]'
                          ELSE format('[{}+0x{:x}]', binaries.name, coalesce(address, 0)) END
    FROM raw.locations LEFT JOIN raw.binaries USING (binary_id) WHERE len(functions) = 0
  ), matching AS (
    SELECT DISTINCT location FROM names
    WHERE contains(translate(name, 'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), ?)
  )
  SELECT stack FROM (SELECT stack, unnest(locations) AS location FROM raw.stacks) SEMI JOIN matching USING (location))";

// The selection's conditions besides its time range.
SqlPart Filter(const model::Selection& selection) {
  SqlPart filter{selection.off_cpu ? "state <> 'on_cpu'" : "state = 'on_cpu'", {}};
  if (selection.wait.has_value())
    filter.text +=
        fmt::format(" AND state = '{}'", model::EnumNames<model::ThreadState>::Name(*selection.wait));
  filter += AndOfProcesses(selection);
  if (selection.processes.size() == 1 && selection.tid.has_value()) {
    filter.text += " AND tid = ?";
    filter.parameters.emplace_back(int64_t{*selection.tid});
  }
  if (!selection.filter.empty()) {
    filter.text += fmt::format(" AND stack IN ({})", kStacksNamed);
    filter.parameters.emplace_back(ToLower(selection.filter));
  }
  return filter;
}

// 3 M rows of work take about 2 s of one CPU; 300 seconds know a share to ± 6 points at worst.
constexpr IdleLimits kIdleLimits{.slice_rows = 500'000, .rows = 3'000'000, .seconds = 300};

constexpr std::string_view kSampleColumns =
    "time_ns AS start_ns, 0 AS length_ns, process, tid, stack, state, 1 AS count, weight_ns, {} AS "
    "variance_ns2";
constexpr std::string_view kWindowColumns =
    "start_ns, end_ns - start_ns AS length_ns, process, tid, stack, state, count, weight_ns, variance_ns2";

// A longer list of days takes longer to search than it saves.
constexpr int64_t kMaxListedDays = 62;

SqlPart SamplesOf(const TimeRange& range) {
  return {"(SELECT * FROM samples WHERE time_ns >= ? AND time_ns < ?)", {range.from_ns, range.to_ns}};
}

// Samples as rows of CPU time.
SqlPart AsTime(const SqlPart& samples) {
  SqlPart rows{"SELECT " + fmt::format(kSampleColumns, kSampleVariance) + " FROM ", {}};
  return rows += samples;
}

// Samples of one second in `one_second_in` as rows of CPU time, each the sum of what has the same stack in a
// second. Such a sum is in or out as a whole: its variance is that of kSampleVariance for sampled waits.
SqlPart AsSampledTime(const SqlPart& samples, int64_t one_second_in) {
  const int64_t length_ns = one_second_in * kNanosPerSecond;
  SqlPart rows{
      fmt::format(
          "SELECT second * {0} + {0} // 2 - {1} // 2 AS start_ns, {1} AS length_ns, process, tid, stack, "
          "state, count, weight_ns * {2} AS weight_ns, weight_ns::DOUBLE * weight_ns * {2} * ({2} - 1) AS "
          "variance_ns2 FROM (SELECT time_ns // {0} AS second, process, tid, stack, state, "
          "count(*) AS count, sum(weight_ns) AS weight_ns FROM ",
          kNanosPerSecond, length_ns, one_second_in),
      {}};
  rows += samples;
  rows.text += " GROUP BY second, process, tid, stack, state)";
  return rows;
}

// Each piece is a scan of its own, since DuckDB skips blocks of rows by one range of times, not by several.
SqlPart RowsOf(const TimePiece& piece) {
  if (!piece.level.has_value()) return AsTime(SamplesOf(piece.range));
  const int64_t length_ns = piece.level->length_ns;
  SqlPart rows{fmt::format("SELECT {} FROM profile_windows WHERE start_ns >= ? AND start_ns < ? AND "
                           "end_ns - start_ns = ?",
                           kWindowColumns),
               {piece.range.from_ns, piece.range.to_ns, length_ns}};
  // A day's windows begin where its first hour's begin, between those of other hours; where they end only the
  // last hour's do.
  if (length_ns < kDay.length_ns || (piece.range.to_ns - piece.range.from_ns) / length_ns > kMaxListedDays)
    return rows;
  std::vector<int64_t> ends;
  for (int64_t end_ns = piece.range.from_ns + length_ns; end_ns <= piece.range.to_ns; end_ns += length_ns)
    ends.push_back(end_ns);
  rows.text += fmt::format(" AND end_ns IN ({})", fmt::join(ends, ", "));
  return rows;
}

SqlPart Filtered(const SqlPart& rows, const model::Selection& selection) {
  SqlPart filtered{"(SELECT * FROM (", {}};
  filtered += rows;
  filtered.text += ") WHERE ";
  filtered += Filter(selection);
  filtered.text += ")";
  return filtered;
}

SqlPart RowsIn(const model::Selection& selection, std::span<const TimePiece> pieces) {
  SqlPart rows;
  std::string_view separator;
  for (const TimePiece& piece : pieces) {
    rows.text += std::exchange(separator, " UNION ALL ");
    rows += RowsOf(piece);
  }
  return Filtered(rows, selection);
}

}  // namespace

Result<CpuTime> CpuTimeIn(Store& store, const model::Selection& selection, Detail detail) {
  if (selection.while_gpu_idle) return CpuSamplesIn(store, selection);
  const bool by_stack = detail == Detail::kStacks || !selection.filter.empty();
  const auto pieces = PiecesOfSamples({selection.from_ns, selection.to_ns}, store.sample_windows(), by_stack);
  if (pieces.empty()) return CpuSamplesIn(store, selection);
  return CpuTime{{RowsIn(selection, pieces)}};
}

Result<CpuTime> CpuSamplesIn(Store& store, const model::Selection& selection) {
  if (!selection.while_gpu_idle)
    return CpuTime{{RowsIn(selection, {{{{selection.from_ns, selection.to_ns}, std::nullopt}}})}};
  ASSIGN_OR_RETURN(IdleSamples idle, WhileGpuIdle(Asking(store), SamplesOf, selection, kIdleLimits));
  CpuTime time{.one_second_in = idle.one_second_in};
  for (const SqlPart& part : idle.parts)
    time.parts.push_back(Filtered(
        idle.one_second_in == 1 ? AsTime(part) : AsSampledTime(part, idle.one_second_in), selection));
  return time;
}

}  // namespace gpusonde::store
