// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/sample_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>

#include "model/tables/samples.h"
#include "store/sql/saturated_sum.h"

namespace gpusonde::store {
namespace {

// The windows of one level from `source`, rows of time, state, count, weight_ns and variance_ns2.
Status SumLevel(duckdb::Connection& connection, std::string_view tables, const WindowLevel& level,
                const TimeRange& range, std::string_view source) {
  TRY(
      connection.Run(fmt::format("DELETE FROM {}.profile_windows WHERE start_ns >= {} AND start_ns < {} "
                                 "AND end_ns - start_ns = {}",
                                 tables, range.from_ns, range.to_ns, level.length_ns)));
  return connection.Run(fmt::format(
      "INSERT INTO {0}.profile_windows BY NAME "
      "SELECT time_ns - time_ns % {1} AS start_ns, time_ns - time_ns % {1} + {1} AS end_ns, process, tid, "
      "{2} "
      "state, {6} AS count, {7} AS weight_ns, sum(variance_ns2) AS variance_ns2 "
      "FROM ({3}) WHERE time_ns >= {4} AND time_ns < {5} GROUP BY ALL ORDER BY start_ns",
      tables, level.length_ns, level.by_stack ? "stack," : "", source, range.from_ns, range.to_ns,
      SaturatedSum("count"), SaturatedSum("weight_ns")));
}

// The windows of every level that intersect the range and end at or before `windows_end_ns`, in the
// connection's transaction.
Status SumWindows(duckdb::Connection& connection, std::string_view catalog, const TimeRange& range,
                  int64_t windows_end_ns) {
  const std::string tables = duckdb::QuoteName(catalog) + ".main";
  const std::string samples = fmt::format(
      "SELECT time_ns, process, tid, stack, state, 1 AS count, weight_ns, {} AS variance_ns2 FROM {}.samples",
      kSampleVariance, tables);
  const std::string hours = fmt::format(
      "SELECT start_ns AS time_ns, process, tid, stack, state, count, weight_ns, variance_ns2 "
      "FROM {}.profile_windows "
      "WHERE end_ns - start_ns = {}",
      tables, kHour.length_ns);
  for (const WindowLevel& level : {kFiveMinutes, kHour, kDay}) {
    const int64_t last = WindowStart(level, std::max(range.from_ns, range.to_ns - 1));
    const TimeRange touched{WindowStart(level, range.from_ns),
                            std::min(last + level.length_ns, WindowStart(level, windows_end_ns))};
    if (touched.from_ns < touched.to_ns)
      TRY(SumLevel(connection, tables, level, touched, level.length_ns == kDay.length_ns ? hours : samples));
  }
  return {};
}

class SampleRollupTables final : public RollupTables {
 public:
  // Of a store that was written before there were windows, everything is summed.
  Traits traits() const override {
    return {.name = "windows",
            .shortest = kFiveMinutes,
            .open = kDay,
            .backlog_ns = std::numeric_limits<int64_t>::max()};
  }

  std::optional<TimeRange> TimesOf(std::span<const model::Batch> batches) const override {
    std::optional<TimeRange> times;
    for (const model::Batch& batch : batches)
      if (batch.table == model::kSamples.info().name) Widen(batch, "time_ns", times);
    return times;
  }

  Result<Stored> Read(const Ask& ask, std::string_view catalog) const override {
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                     ask({fmt::format("SELECT (SELECT coalesce(max(end_ns), 0) FROM {0}.profile_windows), "
                                      "(SELECT max(time_ns) FROM {0}.samples)",
                                      duckdb::QuoteName(catalog) + ".main"),
                          {}}));
    Stored stored;
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    if (!any) return stored;
    stored.summed.to_ns = rows->Int64(0);
    if (rows->IsNull(1)) return stored;
    stored.oldest_ns = 0;  // all samples are summed, however old
    stored.newest_ns = rows->Int64(1);
    return stored;
  }

  Status Sum(duckdb::Connection& connection, std::string_view catalog,
             const TimeRange& range) const override {
    ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(connection));
    TRY(SumWindows(connection, catalog, range, range.to_ns));
    return transaction.Commit();
  }

  Result<int64_t> Correct(duckdb::Connection& connection, std::string_view catalog, const TimeRange& times,
                          const TimeRange& summed) const override {
    const TimeRange late{times.from_ns, std::min(times.to_ns, summed.to_ns - 1) + 1};
    TRY(SumWindows(connection, catalog, late, summed.to_ns));
    return summed.to_ns;
  }
};

}  // namespace

std::vector<TimePiece> PiecesOfSamples(const TimeRange& range, const TimeRange& summed, bool by_stack) {
  constexpr std::array kByStack = {kDay, kHour};
  constexpr std::array kByThread = {kFiveMinutes};
  return by_stack ? PiecesOf(range, summed, kByStack) : PiecesOf(range, summed, kByThread);
}

std::unique_ptr<const RollupTables> SampleRollup() { return std::make_unique<SampleRollupTables>(); }

}  // namespace gpusonde::store
