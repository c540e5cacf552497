// SPDX-License-Identifier: Apache-2.0
#include "replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "sources/proc/process.h"
#include "store/gpu_sql.h"
#include "store/table_rows.h"
#include "store/time_range.h"

namespace gpusonde::app {
namespace {

// Rows are read in slices of this length; memory grows with it.
constexpr int64_t kSliceNs = 10 * kNanosPerSecond;
// The agent's round.
constexpr int64_t kRoundNs = kNanosPerSecond / 4;
// What a new run recalls of the run before: this much time, and open incidents with the time before them,
// unless they are too old.
constexpr int64_t kRecallNs = 180 * kNanosPerSecond;
constexpr int64_t kBeforeIncidentNs = 60 * kNanosPerSecond;
constexpr int64_t kMaxRecallNs = 300 * kNanosPerSecond;
// Nothing is recalled from a run that ended longer ago.
constexpr int64_t kForgottenNs = 3'600 * kNanosPerSecond;
// A killed run loses at most its last second.
constexpr int64_t kLastNs = kNanosPerSecond;

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
    for (int64_t now_ns = slice_ns + kRoundNs; now_ns <= slice_ns + kSliceNs; now_ns += kRoundNs) {
      for_all([&](auto& column) { column.ReplayBefore(now_ns, diagnosis); });
      diagnosis.Advance(std::min(now_ns, range.to_ns));
    }
  }
  return {};
}

// Whether the process still runs; process ids are derived from the boot id.
bool Lives(const model::Process& process, std::string_view boot_id) {
  const Result<proc::ProcessInfo> now = proc::ReadProcessStat(process.pid);
  return now.has_value() && proc::MakeProcessId(boot_id, process.pid, now->start_ticks) == process.process;
}

// The time until which each program was observed, by the last run that saw it (later runs may not have). A
// killed run ended, at the latest, when the next one on its machine began.
Result<std::map<Id128, int64_t>> ReadObservedUntil(store::Store& store, const store::TimeRange& range) {
  const std::vector<store::Parameter> parameters = {range.to_ns, kLastNs, range.from_ns};
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

// Replays all programs that may have run since range.from_ns. A program without a recorded exit that no
// longer runs ended when it was last observed.
Status RecallPrograms(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto observed, ReadObservedUntil(store, range));
  const auto last_observed = [&](const Id128& process) {
    const auto found = observed.find(process);
    return found == observed.end() ? range.to_ns : found->second;
  };
  const std::vector<store::Parameter> since = {range.from_ns};
  const std::string boot_id = proc::ReadHost().boot_id;
  ASSIGN_OR_RETURN(auto processes, store::ReadTable(store, model::kProcesses,
                                                    "WHERE exited_ns IS NULL OR exited_ns >= ?", since));
  for (model::Process& process : processes) {
    if (!process.exited_ns.has_value() && !Lives(process, boot_id))
      process.exited_ns = last_observed(process.process);
    diagnosis.Ingest(process);
  }
  ASSIGN_OR_RETURN(auto sessions,
                   store::ReadTable(store, model::kGpuSessions,
                                    "WHERE end_ns IS NULL OR end_ns >= ? ORDER BY session", since));
  for (model::GpuSession& session : sessions) {
    if (!session.end_ns.has_value()) session.end_ns = last_observed(session.process);
    diagnosis.Ingest(session);
  }
  return {};
}

// Marks the gaps between runs as unobserved for programs that were observed again later. A killed run lost
// its last second, so a gap begins that much earlier.
Status ReplayUnobserved(store::Store& store, const std::map<Id128, int64_t>& observed,
                        diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const std::vector<store::TimeRange> runs, store::ReadObserved(store));
  int64_t observed_until_ns = runs.empty() ? 0 : runs.front().to_ns;
  for (const store::TimeRange& run : runs) {
    if (run.from_ns > observed_until_ns)
      for (const auto& [process, until_ns] : observed)
        if (until_ns > run.from_ns)
          diagnosis.MarkUnobserved(process, observed_until_ns - kLastNs, run.from_ns);
    observed_until_ns = std::max(observed_until_ns, run.to_ns);
  }
  return {};
}

}  // namespace

Result<store::TimeRange> ReadSpan(store::Store& store, int64_t since_ns) {
  // Packs are not unpacked: that would take minutes for a day of 10,000 kernels a second.
  store::SqlPart times{"SELECT min(t), max(t) FROM (SELECT unnest([start_ns, end_ns]) AS t FROM ", {}};
  times += store::GpuWorkSpans({}, {since_ns, std::numeric_limits<int64_t>::max()}, store::WorkIn::kRunsIn);
  times +=
      {" UNION ALL SELECT time_ns FROM metrics UNION ALL SELECT start_ns FROM signals UNION ALL "
       "SELECT coalesce(ended_ns, started_ns) FROM sources) WHERE t >= ?",
       {since_ns}};
  ASSIGN_OR_RETURN(const auto rows, store.Query(times.text, times.parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any || rows->IsNull(0)) return store::TimeRange{};
  return store::TimeRange{rows->Int64(0), rows->Int64(1)};
}

Status Replay(store::Store& store, const store::TimeRange& range, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(const auto processes, store::ReadTable(store, model::kProcesses));
  for (const auto& process : processes) diagnosis.Ingest(process);
  ASSIGN_OR_RETURN(const auto observed, ReadObservedUntil(store, range));
  ASSIGN_OR_RETURN(auto sessions, store::ReadTable(store, model::kGpuSessions));
  for (model::GpuSession& session : sessions) {
    const auto until = observed.find(session.process);
    // The run that saw this session was followed by another.
    if (!session.end_ns.has_value() && until != observed.end() && until->second < range.to_ns - kLastNs)
      session.end_ns = until->second;
    diagnosis.Ingest(session);
  }
  TRY(ReplayUnobserved(store, observed, diagnosis));
  return ReplayRows(store, range, diagnosis);
}

Status Recall(store::Store& store, int64_t now_ns, diagnose::Diagnosis& diagnosis) {
  ASSIGN_OR_RETURN(std::vector<model::Incident> open,
                   store::ReadTable(store, model::kIncidents, "WHERE end_ns IS NULL ORDER BY start_ns"));
  ASSIGN_OR_RETURN(store::TimeRange range, ReadSpan(store, now_ns - kForgottenNs));
  if (range.to_ns > 0) {
    range.to_ns = std::min(range.to_ns, now_ns);
    int64_t from_ns = range.to_ns - kRecallNs;
    for (const model::Incident& incident : open)
      if (incident.start_ns - kBeforeIncidentNs >= range.to_ns - kMaxRecallNs)
        from_ns = std::min(from_ns, incident.start_ns - kBeforeIncidentNs);
    range.from_ns = std::max(range.from_ns, from_ns);
    TRY(RecallPrograms(store, range, diagnosis));
    const std::vector<store::Parameter> since = {range.from_ns};
    ASSIGN_OR_RETURN(const auto said,
                     store::ReadTable(store, model::kIncidents, "WHERE start_ns >= ?", since));
    for (const model::Incident& incident : said) diagnosis.Ingest(incident);
    TRY(ReplayRows(store, range, diagnosis));
  }
  std::map<Id128, model::Incident> recalled;
  for (const diagnose::Report& report : diagnosis.Reports())
    recalled.emplace(report.incident.incident, report.incident);
  model::BatchBuilder<decltype(model::kIncidents)> closed{model::kIncidents};
  for (model::Incident& incident : open) {
    const auto found = recalled.find(incident.incident);
    if (found != recalled.end()) {
      if (found->second.end_ns.has_value()) closed.Append(found->second);
      continue;
    }
    incident.end_ns = std::max({range.to_ns, incident.start_ns, incident.seen_ns.value_or(0)});
    closed.Append(incident);
  }
  if (closed.rows() == 0) return {};
  const std::array<model::Batch, 1> batches = {closed.Take()};
  return store.Append(batches);
}

}  // namespace gpusonde::app
