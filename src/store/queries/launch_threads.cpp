// SPDX-License-Identifier: Apache-2.0
#include "store/queries/launch_threads.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/time_range.h"
#include "model/span_name.h"
#include "store/each_row.h"
#include "store/queries/gpu_work.h"
#include "store/sql/gpu_sql.h"
#include "store/sql/process_sql.h"
#include "store/sql/sql_part.h"
#include "store/table_rows.h"

namespace gpusonde::store {
namespace {

using Thread = std::pair<Id128, int32_t>;

// Gaps of one thread, and how much of a time they cover.
class Gaps {
 public:
  void Add(const TimeRange& gap) { AppendToUnion(gap, ranges_); }

  // To be called once all are added.
  void Sum() {
    before_ns_.clear();
    int64_t sum_ns = 0;
    for (const TimeRange& range : ranges_) {
      before_ns_.push_back(sum_ns);
      sum_ns += range.to_ns - range.from_ns;
    }
    total_ns_ = sum_ns;
  }

  int64_t total_ns() const { return total_ns_; }
  int64_t Within(int64_t from_ns, int64_t to_ns) const { return Until(to_ns) - Until(from_ns); }

 private:
  // How much lies before a time.
  int64_t Until(int64_t time_ns) const {
    const auto next = std::ranges::upper_bound(ranges_, time_ns, {}, &TimeRange::from_ns);
    if (next == ranges_.begin()) return 0;
    const auto last = static_cast<size_t>(next - ranges_.begin()) - 1;
    return before_ns_[last] + std::min(time_ns, ranges_[last].to_ns) - ranges_[last].from_ns;
  }

  std::vector<TimeRange> ranges_;
  std::vector<int64_t> before_ns_;  // how much the ranges before each one cover
  int64_t total_ns_ = 0;
};

// Divides the gaps of one thread among the innermost of its ranges and calls, which arrive by start, outer
// ones first.
class Divider {
 public:
  using Parts = std::map<std::pair<std::string, std::string>, int64_t>;

  Divider(const Gaps& gaps, Parts& parts) : gaps_(gaps), parts_(parts), outside_ns_(gaps.total_ns()) {}

  void Add(bool is_call, std::string_view name, int64_t start_ns, int64_t end_ns) {
    while (!open_.empty() && open_.back().end_ns <= start_ns) Close();
    // One that overlaps the end of another belongs to it only until then.
    if (!open_.empty()) end_ns = std::min(end_ns, open_.back().end_ns);
    const int64_t time_ns = gaps_.Within(start_ns, end_ns);
    if (time_ns == 0) return;
    (open_.empty() ? outside_ns_ : open_.back().self_ns) -= time_ns;
    std::string range = !is_call        ? std::string(model::RepeatedName(name))
                        : open_.empty() ? ""
                                        : open_.back().range;
    open_.push_back(
        {end_ns, time_ns, std::move(range), is_call ? std::string(model::WithoutVersion(name)) : ""});
  }

  void Finish() {
    while (!open_.empty()) Close();
    parts_[{"", ""}] += outside_ns_;
  }

 private:
  struct Open {
    int64_t end_ns;
    int64_t self_ns;  // in gaps, and in none of those within
    std::string range;
    std::string call;
  };

  void Close() {
    const Open& last = open_.back();
    parts_[{last.range, last.call}] += last.self_ns;
    open_.pop_back();
  }

  const Gaps& gaps_;
  Parts& parts_;
  int64_t outside_ns_;
  std::vector<Open> open_;
};

// The gaps, by thread and start: rows of process, tid, from_ns and to_ns.
SqlPart GapsOf(const model::Selection& selection, const TimeRange& range) {
  SqlPart sql{
      "SELECT process, any_value(tid) AS thread, from_ns, to_ns FROM (SELECT process, session, "
      "correlation, max(end_ns) OVER (PARTITION BY device ORDER BY start_ns, end_ns ROWS BETWEEN UNBOUNDED "
      "PRECEDING AND 1 PRECEDING) AS from_ns, start_ns AS to_ns FROM ",
      {}};
  sql += GpuWork(selection, range, WorkIn::kRunsIn);
  sql.text +=
      ") AS gaps JOIN api_calls USING (process, session, correlation) WHERE from_ns < to_ns "
      "GROUP BY process, session, correlation, from_ns, to_ns ORDER BY 1, 2, 3";
  return sql;
}

// Ranges and calls that may run in the time, by thread and start, outer ones first: rows of process, tid,
// start_ns, end_ns, whether it is a call, and name. Ranges whose begin and end may be on different threads
// don't nest.
SqlPart SpansOf(const model::Selection& selection, const TimeRange& range) {
  SqlPart sql{"SELECT process, tid, start_ns, end_ns, 1 AS is_call, name FROM api_calls WHERE ", {}};
  const SqlPart runs_in{"start_ns < ? AND end_ns > ?", {range.to_ns, range.from_ns}};
  sql += runs_in;
  sql += AndOfProcesses(selection);
  sql.text +=
      " UNION ALL SELECT process, tid, start_ns, end_ns, 0, name FROM ranges WHERE kind != "
      "'nvtx_start_end' AND ";
  sql += runs_in;
  sql += AndOfProcesses(selection);
  sql.text += " ORDER BY process, tid, start_ns, end_ns DESC, is_call";
  return sql;
}

// How much there is to read; nothing if calls were sampled.
Result<std::optional<int64_t>> CountRows(Store& store, const model::Selection& selection,
                                         const TimeRange& range) {
  SqlPart sql{"SELECT least((SELECT coalesce(sum(count), 0) FROM ", {}};
  sql += GpuWorkSpans(selection, range, WorkIn::kRunsIn);
  sql +=
      {") + (SELECT count(*) FROM ranges WHERE start_ns < ? AND end_ns > ?) + count(*), "
       "9223372036854775807)::BIGINT, "
       "coalesce(bool_or(probability < 1), false)::INTEGER FROM api_calls WHERE start_ns < ? AND end_ns > ?",
       {range.to_ns, range.from_ns, range.to_ns, range.from_ns}};
  std::optional<int64_t> count;
  TRY(ForEachRow(store, sql, [&](const Rows& row) {
    if (row.Int64(1) == 0) count = row.Int64(0);
  }));
  return count;
}

}  // namespace

Result<std::optional<std::vector<model::LaunchThreadPart>>> ReadLaunchThreadsWhileIdle(
    Store& store, const model::Selection& selection) {
  ASSIGN_OR_RETURN(const TimeRange range, WorkRange(store, selection));
  ASSIGN_OR_RETURN(const std::optional<int64_t> count, CountRows(store, selection, range));
  std::vector<model::LaunchThreadPart> found;
  if (!count.has_value()) return found;
  if (*count > kMaxIdleRows) return std::nullopt;

  std::map<Thread, Gaps> threads;
  TRY(ForEachRow(store, GapsOf(selection, range), [&](const Rows& row) {
    threads[{row.Id(0), static_cast<int32_t>(row.Int64(1))}].Add({row.Int64(2), row.Int64(3)});
  }));
  for (auto& [thread, gaps] : threads) gaps.Sum();

  Divider::Parts parts;
  std::map<Thread, Divider> dividers;
  for (const auto& [thread, gaps] : threads) dividers.try_emplace(thread, gaps, parts);
  TRY(ForEachRow(store, SpansOf(selection, range), [&](const Rows& row) {
    const auto divider = dividers.find({row.Id(0), static_cast<int32_t>(row.Int64(1))});
    if (divider != dividers.end())
      divider->second.Add(row.Int64(4) != 0, row.Text(5), row.Int64(2), row.Int64(3));
  }));
  for (auto& [thread, divider] : dividers) divider.Finish();
  for (const auto& [names, time_ns] : parts)
    if (time_ns > 0) found.push_back({names.first, names.second, time_ns});
  std::ranges::stable_sort(found, std::greater(), &model::LaunchThreadPart::time_ns);
  return found;
}

}  // namespace gpusonde::store
