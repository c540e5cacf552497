// SPDX-License-Identifier: Apache-2.0
#include "replay/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/time.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/sql_part.h"
#include "store/table_rows.h"

namespace gpusonde::replay {
namespace {

// How far time advances at once, as far as in a round of `record`: an agent must not see more at once than it
// could have seen when it was live.
constexpr int64_t kStepNs = kNanosPerSecond / 4;
// Rows are read in slices of at most this length, and of about as many rows (of several hundred bytes each)
// or one step.
constexpr int64_t kSliceNs = 10 * kNanosPerSecond;
constexpr int64_t kSliceRows = 100'000;

// A longer time without rows is skipped: nothing changes in it any more, and a damaged or hostile recording
// may claim centuries.
constexpr int64_t kMaxQuietNs = 3'600 * kNanosPerSecond;

// What a killed run may lack before the last time that it wrote: rows arrive as late as a diagnosis allows.
int64_t LostNs() { return diagnose::Diagnosis::Options().allowed_lateness_ns; }

// The rows of one table in a slice, in the order of time.
template <class Table>
class Column {
 public:
  using Row = typename Table::Row;
  Column(const Table& table, std::string_view time_column, int64_t Row::* time, std::string_view schema = "")
      : table_(table), time_column_(time_column), time_(time), schema_(schema) {}

  Status Read(store::Store& store, int64_t from_ns, int64_t to_ns) {
    const std::string where = fmt::format("WHERE {0} >= ? AND {0} < ? ORDER BY {0}", time_column_);
    const std::vector<store::Parameter> range = {from_ns, to_ns};
    ASSIGN_OR_RETURN(rows_, store::ReadTable(store, table_, where, range, schema_));
    next_ = 0;
    return {};
  }
  bool empty() const { return rows_.empty(); }
  // Adds to `slices`, by their number from range.from_ns on, the rows of those that have many.
  Status CountDense(store::Store& store, const TimeRange& range, std::map<int64_t, int64_t>& slices) const {
    const std::vector<store::Parameter> parameters = {range.from_ns, kSliceNs, range.from_ns, range.to_ns,
                                                      kSliceRows / 16};
    return store::ForEachRow(
        store.Query(fmt::format("SELECT ({0} - ?) // ? AS slice, count(*) FROM {1}{2} "
                                "WHERE {0} BETWEEN ? AND ? GROUP BY slice HAVING count(*) > ?",
                                time_column_, schema_, table_.name()),
                    parameters),
        [&](const store::Rows& row) { slices[row.Int64(0)] += row.Int64(1); });
  }
  // The time of the first row from `from_ns` on; INT64_MAX if there is none.
  Result<int64_t> FindNext(store::Store& store, int64_t from_ns) const {
    const std::vector<store::Parameter> from = {from_ns};
    ASSIGN_OR_RETURN(const auto rows, store.Query(fmt::format("SELECT min({0}) FROM {1}{2} WHERE {0} >= ?",
                                                              time_column_, schema_, table_.name()),
                                                  from));
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    return any && !rows->IsNull(0) ? rows->Int64(0) : std::numeric_limits<int64_t>::max();
  }
  void ReplayBefore(int64_t time_ns, diagnose::Diagnosis& diagnosis) {
    for (; next_ < rows_.size() && rows_[next_].*time_ < time_ns; ++next_) diagnosis.Ingest(rows_[next_]);
  }

 private:
  const Table& table_;
  std::string_view time_column_;
  int64_t Row::* time_;
  std::string_view schema_;
  std::vector<Row> rows_;
  size_t next_ = 0;
};

// All tables whose rows have a time.
class Columns {
 public:
  explicit Columns(store::Store& store) : store_(store) {}

  Result<std::map<int64_t, int64_t>> CountDense(const TimeRange& range) {
    std::map<int64_t, int64_t> slices;
    TRY(UntilFailure([&](auto& column) { return column.CountDense(store_, range, slices); }));
    return slices;
  }
  // Reads the rows of [from_ns, to_ns); false if there are none.
  Result<bool> Read(int64_t from_ns, int64_t to_ns) {
    bool any = false;
    const auto read = [&](auto& column) -> Status {
      TRY(column.Read(store_, from_ns, to_ns));
      any |= !column.empty();
      return {};
    };
    TRY(UntilFailure(read));
    return any;
  }
  // The time of the first row in the range, or the range's end.
  Result<int64_t> FindNext(const TimeRange& range) {
    int64_t first_ns = range.to_ns;
    const auto find = [&](auto& column) -> Status {
      ASSIGN_OR_RETURN(const int64_t next_ns, column.FindNext(store_, range.from_ns));
      first_ns = std::min(first_ns, next_ns);
      return {};
    };
    TRY(UntilFailure(find));
    return first_ns;
  }
  void ReplayBefore(int64_t time_ns, diagnose::Diagnosis& diagnosis) {
    ForAll([&](auto& column) { column.ReplayBefore(time_ns, diagnosis); });
  }

 private:
  void ForAll(auto&& visit) {
    visit(calls_), visit(kernels_), visit(packs_), visit(copies_), visit(syncs_), visit(ranges_),
        visit(collectives_), visit(metrics_), visit(signals_);
  }
  // Visits the columns until one fails.
  Status UntilFailure(auto&& visit) {
    Status done;
    ForAll([&](auto& column) {
      if (done.has_value()) done = visit(column);
    });
    return done;
  }

  store::Store& store_;
  Column<decltype(model::kApiCalls)> calls_{model::kApiCalls, "start_ns", &model::ApiCall::start_ns};
  Column<decltype(model::kKernels)> kernels_{model::kKernels, "start_ns", &model::Kernel::start_ns, "raw."};
  Column<decltype(model::kKernelPacks)> packs_{model::kKernelPacks, "start_ns", &model::KernelPack::start_ns};
  Column<decltype(model::kMemcpys)> copies_{model::kMemcpys, "start_ns", &model::Memcpy::start_ns};
  Column<decltype(model::kSyncs)> syncs_{model::kSyncs, "start_ns", &model::Sync::start_ns};
  Column<decltype(model::kRanges)> ranges_{model::kRanges, "start_ns", &model::Range::start_ns};
  Column<decltype(model::kCollectives)> collectives_{model::kCollectives, "called_ns",
                                                     &model::Collective::called_ns};
  Column<decltype(model::kMetrics)> metrics_{model::kMetrics, "time_ns", &model::MetricValue::time_ns};
  Column<decltype(model::kSignals)> signals_{model::kSignals, "start_ns", &model::Signal::start_ns};
};

// Marks the gaps between runs as unobserved for programs that were observed again later. A killed run lost
// what had not arrived, so a gap begins that much earlier.
Status ReplayUnobserved(store::Store& store, const std::map<Id128, int64_t>& observed,
                        diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const std::vector<TimeRange> runs, store::ReadObserved(store));
  int64_t observed_until_ns = runs.empty() ? 0 : runs.front().to_ns;
  for (const TimeRange& run : runs) {
    if (run.from_ns > observed_until_ns)
      for (const auto& [process, until_ns] : observed)
        if (until_ns > run.from_ns)
          diagnosis.MarkUnobserved(process, observed_until_ns - LostNs(), run.from_ns);
    observed_until_ns = std::max(observed_until_ns, run.to_ns);
  }
  return {};
}

}  // namespace

Result<TimeRange> ReadSpan(store::Store& store, int64_t since_ns) {
  store::SqlPart times{
      "SELECT min(from_ns), max(to_ns) FROM ("
      "SELECT min(CASE WHEN start_ns >= ? THEN start_ns ELSE end_ns END) AS from_ns, max(end_ns) AS to_ns "
      "FROM ",
      {since_ns}};
  times += store::GpuWorkSpans({}, {since_ns, std::numeric_limits<int64_t>::max()}, store::WorkIn::kRunsIn);
  times +=
      {" UNION ALL SELECT min(time_ns), max(time_ns) FROM metrics WHERE time_ns >= ?"
       " UNION ALL SELECT min(start_ns), max(start_ns) FROM signals WHERE start_ns >= ?"
       " UNION ALL SELECT min(last_ns), max(last_ns) FROM"
       " (SELECT coalesce(ended_ns, started_ns) AS last_ns FROM sources) WHERE last_ns >= ?)",
       {since_ns, since_ns, since_ns}};
  ASSIGN_OR_RETURN(const auto rows, store.Query(times.text, times.parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any || rows->IsNull(0)) return TimeRange{};
  return TimeRange{store::BoundTime(rows->Int64(0)), store::BoundTime(rows->Int64(1))};
}

Result<std::map<Id128, int64_t>> ReadObservedUntil(store::Store& store, const TimeRange& range) {
  const store::SqlPart sql{
      "SELECT process, greatest(greatest(runs.end_ns, ?2) - ?2, last_ns) FROM processes JOIN ("
      "SELECT source, coalesce(ended_ns, lead(started_ns) OVER (PARTITION BY boot_id ORDER BY "
      "started_ns), ?1) AS end_ns "
      "FROM sources) AS runs USING (source) LEFT JOIN ("
      "SELECT process, max(end_ns) AS last_ns FROM ("
      "SELECT process, end_ns FROM raw.kernels UNION ALL SELECT process, end_ns FROM kernel_packs) "
      "WHERE end_ns >= ?3 GROUP BY process) USING (process)",
      {range.to_ns, LostNs(), range.from_ns}};
  std::map<Id128, int64_t> observed;
  TRY(store::ForEachRow(store, sql,
                        [&](const store::Rows& row) { observed.emplace(row.Id(0), row.Int64(1)); }));
  return observed;
}

Status ReplayRows(store::Store& store, const TimeRange& range, diagnose::Diagnosis& diagnosis) {
  Columns columns(store);
  ASSIGN_OR_RETURN(const auto dense, columns.CountDense(range));
  const auto rows_of = [&](int64_t slice) {
    const auto found = dense.find(slice);
    return found == dense.end() ? 0 : found->second;
  };
  // How much to read at once from this time on: whole steps. The slice may overlap two that were counted.
  const auto length_from = [&](int64_t from_ns) {
    const int64_t slice = (from_ns - range.from_ns) / kSliceNs;
    const int64_t rows = rows_of(slice) + rows_of(slice + 1);
    return rows <= kSliceRows ? kSliceNs
                              : std::max<int64_t>(kSliceNs / kStepNs * kSliceRows / rows, 1) * kStepNs;
  };
  int64_t quiet_since_ns = range.from_ns;
  int64_t next_ns = range.from_ns;  // no row from the current slice on is earlier
  for (int64_t slice_ns = range.from_ns; slice_ns <= range.to_ns;) {
    const int64_t end_ns = slice_ns + length_from(slice_ns);
    if (next_ns < end_ns) {
      ASSIGN_OR_RETURN(const bool any, columns.Read(slice_ns, end_ns));
      if (any) {
        quiet_since_ns = end_ns;
      } else {
        ASSIGN_OR_RETURN(next_ns, columns.FindNext({end_ns, range.to_ns}));
      }
    } else if (slice_ns - quiet_since_ns >= kMaxQuietNs) {
      slice_ns = quiet_since_ns = next_ns;
      diagnosis.Advance(next_ns);
      continue;
    }
    for (int64_t now_ns = slice_ns + kStepNs; now_ns <= end_ns; now_ns += kStepNs) {
      columns.ReplayBefore(now_ns, diagnosis);
      diagnosis.Advance(std::min(now_ns, range.to_ns));
    }
    slice_ns = end_ns;
  }
  return {};
}

Result<bool> HasSignals(store::Store& store) {
  ASSIGN_OR_RETURN(const std::unique_ptr<store::Rows> rows, store.Query("SELECT 1 FROM signals LIMIT 1"));
  return rows->Next();
}

Status Replay(store::Store& store, const TimeRange& range, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto processes, store::ReadTable(store, model::kProcesses));
  for (const auto& process : processes) diagnosis.Ingest(process);
  ASSIGN_OR_RETURN(const auto containers, store::ReadTable(store, model::kContainers));
  for (const auto& container : containers) diagnosis.Ingest(container);
  ASSIGN_OR_RETURN(const auto communicators, store::ReadTable(store, model::kCommunicators));
  for (const auto& communicator : communicators) diagnosis.Ingest(communicator);
  ASSIGN_OR_RETURN(const auto observed, ReadObservedUntil(store, range));
  ASSIGN_OR_RETURN(auto sessions, store::ReadTable(store, model::kGpuSessions));
  for (model::GpuSession& session : sessions) {
    const auto until = observed.find(session.process);
    // The run that saw this session was followed by another.
    if (!session.end_ns.has_value() && until != observed.end() && until->second < range.to_ns - LostNs()) {
      if (session.start_ns >= until->second) continue;  // nothing of it was surely observed
      session.end_ns = until->second;
    }
    diagnosis.Ingest(session);
  }
  TRY(ReplayUnobserved(store, observed, diagnosis));
  return ReplayRows(store, range, diagnosis);
}

Result<diagnose::Diagnosis> Diagnose(store::Store& store, diagnose::Diagnosis::Options options) {
  ASSIGN_OR_RETURN(options.awaits_signals, HasSignals(store));
  diagnose::Diagnosis diagnosis(std::move(options));
  ASSIGN_OR_RETURN(const TimeRange span, ReadSpan(store, 0));
  TRY(Replay(store, span, diagnosis));
  diagnosis.Finish(span.to_ns);
  return diagnosis;
}

}  // namespace gpusonde::replay
