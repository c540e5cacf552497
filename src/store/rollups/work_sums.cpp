// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/work_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "base/time.h"
#include "store/each_row.h"
#include "store/rollups/captured_nodes.h"
#include "store/rollups/packs.h"
#include "store/rollups/work_summer.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"

namespace gpusonde::store {
namespace {

// Correlation ids are 32-bit and come again; a launch and its work are never this far apart.
constexpr int64_t kCorrelationReachNs = 60 * kNanosPerSecond;

// Rows of work per slice of time, and of these at once with their launches: with a database that may use 134
// MB, the process takes 0.34 GB for a profile of 5 million kernels.
constexpr int64_t kSliceRows = 4'000'000;
constexpr int64_t kRowsAtOnce = 500'000;

// Packed kernels per slice: packs and launches of one slice are in memory, with the database's copy 24 MB
// where one launch in 40 has a stack and 90 MB where all have.
constexpr int64_t kSliceKernels = 500'000;

constexpr std::string_view kWindowsSql =
    "SELECT part, process, device, name, graph, least(sum(count), 9223372036854775807)::BIGINT AS count, "
    "least(sum(duration_ns), 9223372036854775807)::BIGINT AS duration_ns, stack, tid, stream, "
    "sum(weight) AS weight, sum(time_ns) AS time_ns, sum(variance_ns2) AS variance_ns2 FROM kernel_windows "
    "WHERE {} GROUP BY part, process, device, name, graph, stack, tid, stream";

SqlPart& operator<<(SqlPart& part, const model::Selection& selection) {
  part += AndOfProcesses(selection);
  if (selection.device.has_value()) part += {" AND device = ?", {*selection.device}};
  if (selection.device.has_value() && selection.stream.has_value())
    part += {" AND stream = ?", {*selection.stream}};
  return part;
}

SqlPart SumsWhere(SqlPart condition) {
  return {fmt::format(kWindowsSql, condition.text), std::move(condition.parameters)};
}

// Correlation ids of work, as positions of ReadSlicesOf; all below 0 are 0, and all above the maximum are it.
constexpr int64_t kMaxCorrelation = int64_t{1} << 62;
// CUPTI's have 32 bits; they are counted in pieces of so many, larger ones in one.
constexpr int64_t kMaxCounted = int64_t{1} << 32;
constexpr int64_t kIdsPerPiece = int64_t{1} << 14;

class Summing {
 public:
  Summing(const Ask& ask, const model::Selection& selection, const std::string& tables, bool sketches)
      : ask_(ask),
        selection_(selection),
        tables_(tables),
        nodes_(ask, selection, tables),
        summer_(sketches) {}

  Status AddRows(const TimeRange& range) {
    const auto counted = [this](const TimeRange& part) {
      SqlPart rows{"(SELECT start_ns, 1 AS count FROM ", {}};
      rows += Work(part, {});
      rows.text += ")";
      return rows;
    };
    ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlicesOf(ask_, counted, range, kSliceRows));
    for (const TimeRange& slice : slices) {
      ASSIGN_OR_RETURN(const std::vector<SqlPart> parts, PartsOf(slice));
      for (const SqlPart& part : parts) TRY(AddPart(slice, part));
    }
    return {};
  }

  Status AddPacks(const TimeRange& range) {
    const auto counted = [this](const TimeRange& part) {
      return PackSpans(selection_, part, WorkIn::kStartsIn, tables_);
    };
    // Without packs, launches would be read for nothing.
    SqlPart some{"SELECT 1 WHERE EXISTS ", {}};
    some += counted(range);
    ASSIGN_OR_RETURN(const std::unique_ptr<store::Rows> rows, ask_(some));
    ASSIGN_OR_RETURN(const bool any, rows->Next());
    if (!any) return {};
    ASSIGN_OR_RETURN(const std::vector<TimeRange> slices, ReadSlicesOf(ask_, counted, range, kSliceKernels));
    const PackQuery query{.which = WorkIn::kStartsIn, .launches = true, .tables = tables_};
    for (const TimeRange& slice : slices) {
      TRY(AddLaunches(slice, {}));
      TRY(ForEachPack(ask_, selection_, slice, query,
                      [&](const Pack& pack) { return AddPack(pack, slice); }));
      summer_.EndSlice();
    }
    return {};
  }

  std::vector<model::KernelWindow> Rows() const { return summer_.Rows(); }

 private:
  SqlPart Work(const TimeRange& range, const SqlPart& also) const {
    return GpuWork(selection_, range, WorkIn::kStartsIn, Packs::kNone, tables_, also);
  }

  // Conditions on correlation ids (" AND …") that split a slice's rows, so that those of one and their
  // launches fit into memory. Not parts of time: work may start a minute after its launch, so each part would
  // have to read all launches of that minute. Ids mostly grow with time, so DuckDB finds them quickly.
  Result<std::vector<SqlPart>> PartsOf(const TimeRange& slice) const {
    SqlPart counts{fmt::format("SELECT least(greatest(correlation, 0), {}) // {} AS piece, count(*) FROM ",
                               kMaxCounted, kIdsPerPiece),
                   {}};
    counts += Work(slice, {});
    counts.text += " GROUP BY piece ORDER BY piece NULLS FIRST";
    std::vector<SqlPart> parts;
    TimeRange part;
    int64_t in_part = 0;
    const auto end_part = [&] {
      if (in_part > 0) parts.push_back(IdsIn(part));
      in_part = 0;
    };
    TRY(ForEachRow(ask_, counts, [&](const store::Rows& row) -> Status {
      if (row.IsNull(0)) {
        parts.push_back({" AND correlation IS NULL", {}});
        return {};
      }
      const int64_t from = row.Int64(0) * kIdsPerPiece, count = row.Int64(1);
      const TimeRange piece{from, from < kMaxCounted ? from + kIdsPerPiece : kMaxCorrelation + 1};
      if (in_part + count > kRowsAtOnce) end_part();
      if (count > kRowsAtOnce) return AddPartsOfPiece(slice, piece, parts);
      part = {in_part > 0 ? part.from_ns : piece.from_ns, piece.to_ns};
      in_part += count;
      return {};
    }));
    end_part();
    return parts;
  }

  Status AddPartsOfPiece(const TimeRange& slice, const TimeRange& piece, std::vector<SqlPart>& parts) const {
    const auto counted = [&](const TimeRange& ids) {
      SqlPart work{fmt::format("(SELECT least(greatest(correlation, 0), {}) AS start_ns, 1 AS count FROM ",
                               kMaxCorrelation),
                   {}};
      work += Work(slice, IdsIn(ids));
      work.text += ")";
      return work;
    };
    ASSIGN_OR_RETURN(const std::vector<TimeRange> ranges, ReadSlicesOf(ask_, counted, piece, kRowsAtOnce, 1));
    for (const TimeRange& ids : ranges) parts.push_back(IdsIn(ids));
    return {};
  }

  static SqlPart IdsIn(const TimeRange& ids) {
    SqlPart condition{" AND correlation IS NOT NULL", {}};
    if (ids.from_ns > 0) condition += {" AND correlation >= ?", {ids.from_ns}};
    if (ids.to_ns <= kMaxCorrelation) condition += {" AND correlation < ?", {ids.to_ns}};
    return condition;
  }

  Status AddLaunches(const TimeRange& slice, const SqlPart& also) {
    const TimeRange reach = LaunchReach(slice);
    SqlPart sql{fmt::format("SELECT process, session, correlation, start_ns, tid, stack, probability FROM "
                            "{}api_calls WHERE stack IS NOT NULL AND probability > 0 AND probability <= 1 "
                            "AND start_ns >= ? AND start_ns < ?",
                            tables_),
                {reach.from_ns, reach.to_ns}};
    sql += AndOfProcesses(selection_);
    sql += also;
    return ForEachRow(ask_, sql, [this](const store::Rows& row) {
      summer_.AddLaunch({.process = row.Id(0),
                         .session = row.Int64(1),
                         .correlation = row.Int64(2),
                         .start_ns = row.Int64(3),
                         .tid = static_cast<int32_t>(row.Int64(4)),
                         .stack = row.Id(5),
                         .probability = row.Float64(6)});
    });
  }

  Status AddPart(const TimeRange& slice, const SqlPart& part) {
    TRY(AddLaunches(slice, part));
    SqlPart sql{
        "SELECT process, device, session, correlation, stream, start_ns, end_ns, name, graph_node FROM ", {}};
    sql += Work(slice, part);
    const auto add = [this](const store::Rows& row) -> Status {
      WorkSummer::KindKey key{
          .process = row.Id(0), .device = row.Id(1), .name = row.Text(7), .stream = row.Int64(4)};
      const int64_t session = row.Int64(2);
      if (!row.IsNull(8)) TRY(SetGraph(key, row.Int64(8), session));
      const int64_t start_ns = row.Int64(5);
      summer_.Add(summer_.KindOf(key), session, OptionalInt64(row, 3), start_ns, row.Int64(6) - start_ns);
      return {};
    };
    TRY(ForEachRow(ask_, sql, add));
    summer_.EndSlice();
    return {};
  }

  Status AddPack(const Pack& pack, const TimeRange& slice) {
    const WorkSummer::KindKey outside_graphs{
        .process = pack.process, .device = pack.device, .name = pack.name, .stream = pack.stream};
    WorkSummer::Kind* kind = pack.graph_nodes.empty() ? &summer_.KindOf(outside_graphs) : nullptr;
    for (size_t i = 0; i < pack.size(); ++i) {
      const int64_t start_ns = pack.StartNs(i);
      if (start_ns < slice.from_ns || start_ns >= slice.to_ns) continue;
      if (!pack.graph_nodes.empty()) {
        WorkSummer::KindKey key = outside_graphs;
        if (i < pack.graph_nodes.size()) TRY(SetGraph(key, pack.graph_nodes[i], pack.session));
        kind = &summer_.KindOf(key);
      }
      summer_.Add(*kind, pack.session,
                  i < pack.correlations.size() ? std::optional(pack.correlations[i]) : std::nullopt, start_ns,
                  pack.DurationNs(i));
    }
    return {};
  }

  Status SetGraph(WorkSummer::KindKey& key, int64_t node, int64_t session) {
    key.graph = true;
    ASSIGN_OR_RETURN(key.captured, nodes_.StackOf(key.process, node, session));
    return {};
  }

  const Ask& ask_;
  const model::Selection& selection_;
  const std::string& tables_;
  CapturedNodes nodes_;
  WorkSummer summer_;
};

}  // namespace

bool MayHaveStarted(int64_t launch_ns, int64_t work_ns) {
  int64_t apart_ns = 0;
  return !__builtin_sub_overflow(work_ns, launch_ns, &apart_ns) && apart_ns > -kCorrelationReachNs &&
         apart_ns < kCorrelationReachNs;
}

TimeRange LaunchReach(const TimeRange& range) {
  constexpr int64_t kLatest = std::numeric_limits<int64_t>::max() - kCorrelationReachNs;
  return {std::max<int64_t>(std::max<int64_t>(range.from_ns, 0) - kCorrelationReachNs, 0),
          std::min(range.to_ns, kLatest) + kCorrelationReachNs};
}

Result<std::vector<model::KernelWindow>> SumWork(const Ask& ask, const model::Selection& selection,
                                                 const TimeRange& range, Sketches sketches,
                                                 const std::string& tables) {
  const TimeRange since_1970{std::max<int64_t>(range.from_ns, 0), range.to_ns};
  Summing summing(ask, selection, tables, sketches == Sketches::kYes);
  TRY(summing.AddRows(since_1970));
  TRY(summing.AddPacks(since_1970));
  return summing.Rows();
}

SqlPart SumsOfWindows(const model::Selection& selection, const TimeRange& range, int64_t length_ns) {
  SqlPart condition{
      "part IN ('all', 'sampled', 'captured') AND start_ns >= ? AND start_ns < ? AND end_ns - start_ns = ?",
      {range.from_ns, range.to_ns, length_ns}};
  return SumsWhere(condition << selection);
}

SqlPart SumsOfLost(const model::Selection& selection, const TimeRange& range) {
  SqlPart condition{
      "part NOT IN ('all', 'sampled', 'captured') AND count >= 0 AND duration_ns >= 0 AND start_ns >= ? AND "
      "start_ns < ?",
      {range.from_ns, range.to_ns}};
  return SumsWhere(condition << selection);
}

}  // namespace gpusonde::store
