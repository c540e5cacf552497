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
#include "store/gpu_sql.h"
#include "store/table_rows.h"

namespace gpusonde::replay {
namespace {

// Rows are read in slices of this length; memory grows with it.
constexpr int64_t kSliceNs = 10 * kNanosPerSecond;
// How far time advances at once, as far as in a round of `record`: an agent must not see more at once than it
// could have seen when it was live.
constexpr int64_t kStepNs = kNanosPerSecond / 4;

// What a killed run may lack before the last time that it wrote: rows arrive as late as a diagnosis allows.
int64_t LostNs() { return diagnose::Diagnosis::Options().allowed_lateness_ns; }

// The rows of one table in a slice, replayed in time order.
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

// Marks the gaps between runs as unobserved for programs that were observed again later. A killed run lost
// what had not arrived, so a gap begins that much earlier.
Status ReplayUnobserved(store::Store& store, const std::map<Id128, int64_t>& observed,
                        diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const std::vector<store::TimeRange> runs, store::ReadObserved(store));
  int64_t observed_until_ns = runs.empty() ? 0 : runs.front().to_ns;
  for (const store::TimeRange& run : runs) {
    if (run.from_ns > observed_until_ns)
      for (const auto& [process, until_ns] : observed)
        if (until_ns > run.from_ns)
          diagnosis.MarkUnobserved(process, observed_until_ns - LostNs(), run.from_ns);
    observed_until_ns = std::max(observed_until_ns, run.to_ns);
  }
  return {};
}

}  // namespace

Result<store::TimeRange> ReadSpan(store::Store& store, int64_t since_ns) {
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
  if (!any || rows->IsNull(0)) return store::TimeRange{};
  return store::TimeRange{rows->Int64(0), rows->Int64(1)};
}

Result<std::map<Id128, int64_t>> ReadObservedUntil(store::Store& store, const store::TimeRange& range) {
  const std::vector<store::Parameter> parameters = {range.to_ns, LostNs(), range.from_ns};
  ASSIGN_OR_RETURN(
      const auto rows,
      store.Query(
          "SELECT process, greatest(runs.end_ns - ?2, last_ns) FROM processes JOIN ("
          "SELECT source, coalesce(ended_ns, lead(started_ns) OVER (PARTITION BY boot_id ORDER BY "
          "started_ns), ?1) AS end_ns "
          "FROM sources) AS runs USING (source) LEFT JOIN ("
          "SELECT process, max(end_ns) AS last_ns FROM ("
          "SELECT process, end_ns FROM raw.kernels UNION ALL SELECT process, end_ns FROM kernel_packs) "
          "WHERE end_ns >= ?3 GROUP BY process) USING (process)",
          parameters));
  std::map<Id128, int64_t> observed;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, rows->Next());
    if (!more) return observed;
    observed.emplace(rows->Id(0), rows->Int64(1));
  }
}

Status ReplayRows(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis) {
  Column calls(model::kApiCalls, "start_ns", &model::ApiCall::start_ns);
  Column kernels(model::kKernels, "start_ns", &model::Kernel::start_ns, "raw.");
  Column packs(model::kKernelPacks, "start_ns", &model::KernelPack::start_ns);
  Column copies(model::kMemcpys, "start_ns", &model::Memcpy::start_ns);
  Column syncs(model::kSyncs, "start_ns", &model::Sync::start_ns);
  Column ranges(model::kRanges, "start_ns", &model::Range::start_ns);
  Column metrics(model::kMetrics, "time_ns", &model::MetricValue::time_ns);
  Column signals(model::kSignals, "start_ns", &model::Signal::start_ns);
  const auto for_all = [&](auto&& visit) {
    visit(calls), visit(kernels), visit(packs), visit(copies), visit(syncs), visit(ranges), visit(metrics),
        visit(signals);
  };
  for (int64_t slice_ns = range.from_ns; slice_ns <= range.to_ns; slice_ns += kSliceNs) {
    Status read;
    for_all([&](auto& column) {
      if (read.has_value()) read = column.Read(store, slice_ns, slice_ns + kSliceNs);
    });
    TRY(std::move(read));
    for (int64_t now_ns = slice_ns + kStepNs; now_ns <= slice_ns + kSliceNs; now_ns += kStepNs) {
      for_all([&](auto& column) { column.ReplayBefore(now_ns, diagnosis); });
      diagnosis.Advance(std::min(now_ns, range.to_ns));
    }
  }
  return {};
}

Status Replay(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto processes, store::ReadTable(store, model::kProcesses));
  for (const auto& process : processes) diagnosis.Ingest(process);
  ASSIGN_OR_RETURN(const auto observed, ReadObservedUntil(store, range));
  ASSIGN_OR_RETURN(auto sessions, store::ReadTable(store, model::kGpuSessions));
  for (model::GpuSession& session : sessions) {
    const auto until = observed.find(session.process);
    // The run that saw this session was followed by another.
    if (!session.end_ns.has_value() && until != observed.end() && until->second < range.to_ns - LostNs())
      session.end_ns = until->second;
    diagnosis.Ingest(session);
  }
  TRY(ReplayUnobserved(store, observed, diagnosis));
  return ReplayRows(store, range, diagnosis);
}

}  // namespace gpusonde::replay
