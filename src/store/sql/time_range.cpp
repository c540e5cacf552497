// SPDX-License-Identifier: Apache-2.0
#include "store/sql/time_range.h"
#include "store/each_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/time.h"

namespace gpusonde::store {
namespace {

constexpr const char* kRunsSql = R"(
  SELECT started_ns, ended_ns,
         lead(started_ns, 1, 9223372036854775807) OVER (PARTITION BY host ORDER BY started_ns) AS next_ns, host
  FROM sources ORDER BY started_ns)";

TimeRange Bound(const TimeRange& range) { return {BoundTime(range.from_ns), BoundTime(range.to_ns)}; }

// How far back a host is first looked for: an agent's rows come within a minute.
constexpr int64_t kFirstReachNs = 600 * kNanosPerSecond;
constexpr int64_t kLongestReachNs = int64_t{1} << 59;

// The latest value of a time column in the range, if there is any. Reads raw tables: making the rows of a
// keyed table distinct took 90 ms of the 95 for a day's commits, and the maximum is the same.
Result<std::optional<int64_t>> Latest(Store& store, std::string_view table, std::string_view column,
                                      const TimeRange& range) {
  const Parameter parameters[] = {range.from_ns, range.to_ns};
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Rows> rows,
      store.Query(fmt::format("SELECT max({1}) FROM raw.{0} WHERE {1} >= ? AND {1} < ?", table, column),
                  parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any && !rows->IsNull(0) ? std::optional(rows->Int64(0)) : std::nullopt;
}

// The last sign of life in the range: a sample, or a commit of a spool; the range's begin when there is none.
// There is a commit a second but a sample for each of a CPU's periods: only samples after the last commit are
// read, and mostly both are in the store's newest part.
Result<int64_t> LastSeen(Store& store, const TimeRange& range) {
  Store* in = &store.Within({range.to_ns, range.to_ns});
  ASSIGN_OR_RETURN(std::optional<int64_t> commit_ns, Latest(*in, "batches", "committed_ns", range));
  if (!commit_ns.has_value() && in != &store) {
    in = &store;
    ASSIGN_OR_RETURN(commit_ns, Latest(store, "batches", "committed_ns", range));
  }
  const int64_t from_ns = commit_ns.value_or(range.from_ns);
  ASSIGN_OR_RETURN(const auto sample_ns, Latest(*in, "samples", "time_ns", {from_ns, range.to_ns}));
  return sample_ns.value_or(from_ns);
}

// The latest time of a sample or metric of the host in the range, if there is any.
Result<std::optional<int64_t>> LatestOf(Store& store, const std::string& host, const TimeRange& range) {
  const std::vector<Parameter> parameters = {host, range.from_ns, range.to_ns, range.from_ns, range.to_ns};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Query("WITH of_host AS (SELECT source FROM raw.sources WHERE host = ?) "
                               "SELECT max(time_ns) FROM (SELECT max(time_ns) AS time_ns FROM raw.samples "
                               "WHERE time_ns >= ? AND time_ns < ? AND process IN "
                               "(SELECT process FROM raw.processes WHERE source IN (FROM of_host)) "
                               "UNION ALL SELECT max(time_ns) FROM raw.metrics "
                               "WHERE time_ns >= ? AND time_ns < ? AND source IN (FROM of_host))",
                               parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any && !rows->IsNull(0) ? std::optional(rows->Int64(0)) : std::nullopt;
}

// The last sign of life of one host of several: a commit doesn't say which one it is of, but nobody was there
// after the last one. A host that still sends has samples shortly before it, so that those of days are rarely
// read. Without any sample or metric, as LastSeen.
Result<int64_t> LastSeenOf(Store& store, const std::string& host, const TimeRange& range) {
  ASSIGN_OR_RETURN(const int64_t anybody_ns, LastSeen(store, range));
  const int64_t begin_ns = BoundTime(range.from_ns), end_ns = BoundTime(anybody_ns);
  TimeRange part{end_ns, end_ns + 1};
  int64_t length_ns = kFirstReachNs;
  while (part.from_ns > begin_ns) {
    part.from_ns = std::max(begin_ns, part.to_ns - length_ns);
    ASSIGN_OR_RETURN(const auto latest_ns, LatestOf(store, host, part));
    if (latest_ns.has_value()) return *latest_ns;
    part.to_ns = part.from_ns;
    length_ns = std::min(length_ns * 8, kLongestReachNs);
  }
  return anybody_ns;
}

struct Run {
  std::string host;
  TimeRange time;
  std::optional<int64_t> last_seen_before_ns;  // of one without an end
};

// By start. Ends may be unknown, times unbounded.
Result<std::vector<Run>> SourceRuns(Store& store) {
  std::vector<Run> runs;
  TRY(ForEachRow(store.Query(kRunsSql), [&](const Rows& row) {
    Run run{std::string(row.Text(3)), {row.Int64(0), row.Int64(1)}, std::nullopt};
    if (row.IsNull(1)) run.last_seen_before_ns = row.Int64(2);
    runs.push_back(std::move(run));
  }));
  return runs;
}

Status FindEnds(Store& store, std::span<Run> runs, bool several_hosts) {
  for (Run& run : runs) {
    if (run.last_seen_before_ns.has_value()) {
      const TimeRange range{run.time.from_ns, *run.last_seen_before_ns};
      ASSIGN_OR_RETURN(run.time.to_ns,
                       several_hosts ? LastSeenOf(store, run.host, range) : LastSeen(store, range));
    }
    run.time = Bound(run.time);
  }
  return {};
}

bool AreOfSeveralHosts(std::span<const Run> runs) {
  return std::ranges::any_of(runs, [&](const Run& run) { return run.host != runs.front().host; });
}

std::vector<TimeRange> TimesOf(std::span<const Run> runs) {
  std::vector<TimeRange> times;
  for (const Run& run : runs) times.push_back(run.time);
  return times;
}

// When the last GPU work that began at `from_ns` or later ended; `from_ns` without any.
Result<int64_t> LastWork(Store& store, int64_t from_ns) {
  SqlPart work;
  for (const char* const table : {"kernels", "kernel_packs", "memcpys", "memsets"})
    work += {fmt::format("{}SELECT max(end_ns) AS end_ns FROM raw.{} WHERE start_ns >= ?",
                         work.text.empty() ? "" : " UNION ALL ", table),
             {from_ns}};
  ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                   store.Within({from_ns, from_ns})
                       .Query(fmt::format("SELECT max(end_ns) FROM ({})", work.text), work.parameters));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  return any && !rows->IsNull(0) ? std::max(rows->Int64(0), from_ns) : from_ns;
}

}  // namespace

int64_t BoundTime(int64_t time_ns) { return std::clamp(time_ns, -(int64_t{1} << 60), int64_t{1} << 62); }

Result<std::vector<TimeRange>> ReadObserved(Store& store) {
  ASSIGN_OR_RETURN(std::vector<Run> runs, SourceRuns(store));
  TRY(FindEnds(store, runs, AreOfSeveralHosts(runs)));
  return TimesOf(runs);
}

Result<std::vector<TimeRange>> ReadSampled(Store& store) {
  ASSIGN_OR_RETURN(std::vector<Run> runs, SourceRuns(store));
  TRY(FindEnds(store, runs, AreOfSeveralHosts(runs)));
  for (Run& run : runs) {
    if (!run.last_seen_before_ns.has_value()) continue;
    const TimeRange latest{std::max(run.time.from_ns, run.time.to_ns - kMaxSampleDelayNs),
                           run.time.to_ns + 1};
    ASSIGN_OR_RETURN(const auto sample_ns, Latest(store.Within(latest), "samples", "time_ns", latest));
    run.time.to_ns = sample_ns.has_value() ? *sample_ns + 1 : latest.from_ns;
  }
  return TimesOf(runs);
}

Result<std::vector<TimeRange>> ReadRuns(Store& store) {
  ASSIGN_OR_RETURN(std::vector<Run> runs, SourceRuns(store));
  if (runs.empty()) return std::vector<TimeRange>();
  TRY(FindEnds(store, runs, AreOfSeveralHosts(runs)));
  Run& last = runs.back();
  if (last.last_seen_before_ns.has_value()) {
    ASSIGN_OR_RETURN(last.time.to_ns, LastWork(store, last.time.to_ns));
    last.time = Bound(last.time);
  }
  return UnionOf(TimesOf(runs));
}

Result<std::map<std::string, std::vector<TimeRange>>> ReadRunsByHost(Store& store) {
  ASSIGN_OR_RETURN(std::vector<Run> runs, SourceRuns(store));
  TRY(FindEnds(store, runs, AreOfSeveralHosts(runs)));
  std::map<std::string, std::vector<TimeRange>> by_host;
  for (const Run& run : runs) by_host[run.host].push_back(run.time);
  for (auto& [host, times] : by_host) times = UnionOf(std::move(times));
  return by_host;
}

Result<TimeRange> ReadTimeRange(Store& store, const model::Selection& selection) {
  constexpr int64_t kOpenBegin = std::numeric_limits<int64_t>::min();
  constexpr int64_t kOpenEnd = std::numeric_limits<int64_t>::max();
  TimeRange range{selection.from_ns, selection.to_ns};
  if (range.from_ns != kOpenBegin && range.to_ns != kOpenEnd) return range;
  ASSIGN_OR_RETURN(std::vector<TimeRange> observed, ReadObserved(store));
  if (observed.empty()) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Rows> rows,
                     store.Query("SELECT coalesce(min(time_ns), 0), coalesce(max(time_ns), 0) FROM samples"));
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    observed.push_back(any ? Bound({rows->Int64(0), rows->Int64(1)}) : TimeRange{});
  }
  if (range.from_ns == kOpenBegin) range.from_ns = observed.front().from_ns;
  if (range.to_ns == kOpenEnd) range.to_ns = std::ranges::max(observed, {}, &TimeRange::to_ns).to_ns;
  return range;
}

SqlPart AndOfSignals(const TimeRange& range) {
  constexpr int64_t kMaxRowNs = 60 * kNanosPerSecond;
  return {
      " AND bucket_ns BETWEEN 1 AND ? AND len(\"values\") <= ? // bucket_ns "
      "AND start_ns > ? AND start_ns < ?",
      {kMaxRowNs, kMaxRowNs, std::max(range.from_ns, kMaxRowNs) - kMaxRowNs, range.to_ns}};
}

Result<std::vector<TimeRange>> ReadUnion(Rows& rows) {
  std::vector<TimeRange> times;
  TRY(ForEachRow(rows, [&](const Rows& row) { AppendToUnion({row.Int64(0), row.Int64(1)}, times); }));
  return times;
}

}  // namespace gpusonde::store
