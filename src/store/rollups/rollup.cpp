// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/rollup.h"

#include <algorithm>
#include <vector>

#include "base/time.h"

namespace gpusonde::store {
namespace {

// Rows come once a second; windows wait a little longer for what is slow.
constexpr int64_t kLatenessNs = 10 * kNanosPerSecond;

// The pause after a failure, as a multiple of the time that it took, and at least.
constexpr int64_t kPauseParts = 50;
constexpr int64_t kMinPauseNs = 10 * kNanosPerSecond;

bool IsEmpty(const TimeRange& range) { return range.from_ns >= range.to_ns; }

}  // namespace

void Rollup::Reset() {
  summed_ = {};
  newest_ns_.clear();
  last_ = {};
}

Status Rollup::Load(duckdb::Connection& connection, std::span<const std::string> catalogs) {
  Reset();
  const Ask ask = [&connection](const SqlPart& sql) { return connection.Ask(sql.text, sql.parameters); };
  std::vector<int64_t> ends;
  for (const std::string& catalog : catalogs) {
    ASSIGN_OR_RETURN(const RollupTables::Stored stored, tables_->Read(ask, catalog));
    if (stored.newest_ns.has_value()) newest_ns_[catalog] = *stored.newest_ns;
    ends.push_back(stored.summed.to_ns);
    if (IsEmpty(stored.summed)) continue;
    summed_.from_ns =
        IsEmpty(summed_) ? stored.summed.from_ns : std::min(summed_.from_ns, stored.summed.from_ns);
    summed_.to_ns = std::max(summed_.to_ns, stored.summed.to_ns);
  }
  const RollupTables::Traits traits = tables_->traits();
  // Of a clock that was ahead: what is written from now on belongs to time that they include.
  summed_.to_ns = std::min(summed_.to_ns, WindowStart(traits.shortest, epoch_now_()));
  summed_.from_ns = std::min(summed_.from_ns, summed_.to_ns);
  const int64_t begin_ns =
      std::max(summed_.from_ns, WindowStart(traits.shortest, summed_.to_ns - traits.backlog_ns));
  for (size_t i = 0; i < catalogs.size(); ++i) {
    const TimeRange missing{std::max(ends[i], begin_ns), summed_.to_ns};
    const auto newest = newest_ns_.find(catalogs[i]);
    if (!IsEmpty(missing) && newest != newest_ns_.end() &&
        newest->second >= WindowStart(traits.open, missing.from_ns))
      TRY(tables_->Sum(connection, catalogs[i], missing));
  }
  return SumEnded(connection);
}

Status Rollup::Correct(duckdb::Connection& connection, std::string_view catalog, const TimeRange& times) {
  if (times.from_ns >= summed_.to_ns) return {};
  ASSIGN_OR_RETURN(const int64_t end_ns, tables_->Correct(connection, catalog, times, summed_));
  summed_.to_ns = std::max(end_ns, summed_.from_ns);
  return {};
}

Status Rollup::Advance(duckdb::Connection& connection, const std::string& catalog, const TimeRange& times) {
  const auto newest = newest_ns_.try_emplace(catalog, times.to_ns).first;
  newest->second = std::max(newest->second, times.to_ns);
  const int64_t begin_ns = monotonic_now_();
  if (!last_.has_value() && begin_ns < retry_ns_) return last_;
  last_ = SumEnded(connection);
  const int64_t end_ns = monotonic_now_();
  retry_ns_ = end_ns + std::max(kPauseParts * (end_ns - begin_ns), kMinPauseNs);
  return last_;
}

Status Rollup::SumEnded(duckdb::Connection& connection) {
  const RollupTables::Traits traits = tables_->traits();
  int64_t newest_ns = 0;
  for (const auto& [catalog, of_catalog_ns] : newest_ns_) newest_ns = std::max(newest_ns, of_catalog_ns);
  newest_ns = std::min(newest_ns, epoch_now_());
  const int64_t end_ns = WindowStart(traits.shortest, newest_ns - kLatenessNs);
  if (IsEmpty(summed_)) {
    const int64_t begin_ns = WindowStart(traits.shortest, newest_ns - traits.backlog_ns);
    summed_ = {begin_ns, begin_ns};
  }
  if (end_ns <= summed_.to_ns) return {};
  // Rows of a file that were under way may lie in longer windows that are over now.
  const int64_t open_since_ns = WindowStart(traits.open, summed_.to_ns);
  for (const auto& [catalog, of_catalog_ns] : newest_ns_)
    if (of_catalog_ns >= open_since_ns) TRY(tables_->Sum(connection, catalog, {summed_.to_ns, end_ns}));
  summed_.to_ns = end_ns;
  return {};
}

}  // namespace gpusonde::store
