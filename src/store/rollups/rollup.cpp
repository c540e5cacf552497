// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/rollup.h"

#include <algorithm>
#include <utility>

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
  stored_.clear();
  summed_ = {};
  newest_ns_.clear();
}

Status Rollup::Add(duckdb::Connection& connection, const std::string& catalog) {
  const Ask ask = [&connection](const SqlPart& sql) { return connection.Ask(sql.text, sql.parameters); };
  ASSIGN_OR_RETURN(stored_[catalog], tables_->Read(ask, catalog));
  return {};
}

Status Rollup::Start(duckdb::Connection& connection, const Status& may_write) {
  for (const auto& [catalog, stored] : stored_) {
    if (stored.newest_ns.has_value()) newest_ns_[catalog] = *stored.newest_ns;
    if (IsEmpty(stored.summed)) continue;
    summed_.from_ns =
        IsEmpty(summed_) ? stored.summed.from_ns : std::min(summed_.from_ns, stored.summed.from_ns);
    summed_.to_ns = std::max(summed_.to_ns, stored.summed.to_ns);
  }
  // Of a clock that was ahead: what is written from now on belongs to time that they include.
  summed_.to_ns = std::min(summed_.to_ns, WindowStart(tables_->traits().shortest, epoch_now_()));
  summed_.from_ns = std::min(summed_.from_ns, summed_.to_ns);
  TRY(SumMissing(connection, may_write));
  return Try([&] { return SumEnded(connection); });
}

Status Rollup::Try(const std::function<Status()>& sum) {
  const int64_t begin_ns = monotonic_now_();
  if (!last_.has_value() && begin_ns < retry_ns_) return Fail(ErrorCode::kUnavailable, last_.error().message);
  last_ = sum();
  const int64_t end_ns = monotonic_now_();
  retry_ns_ = end_ns + std::max(kPauseParts * (end_ns - begin_ns), kMinPauseNs);
  return last_;
}

// Brings the files to one end. Where that fails, the sums of all of them end with those of the first: what is
// in some files only is summed again.
Status Rollup::SumMissing(duckdb::Connection& connection, const Status& may_write) {
  const RollupTables::Traits traits = tables_->traits();
  const int64_t end_ns = summed_.to_ns;
  const int64_t begin_ns =
      std::max(summed_.from_ns, WindowStart(traits.shortest, end_ns - traits.backlog_ns));
  Status summed = may_write.has_value() ? Status() : Fail(ErrorCode::kUnavailable, may_write.error().message);
  for (const auto& [catalog, stored] : std::exchange(stored_, {})) {
    const TimeRange missing{std::max(stored.summed.to_ns, begin_ns), end_ns};
    if (IsEmpty(missing) || !stored.newest_ns.has_value() ||
        *stored.newest_ns < WindowStart(traits.open, missing.from_ns))
      continue;
    if (summed.has_value()) summed = Try([&] { return tables_->Sum(connection, catalog, missing); });
    if (!summed.has_value()) summed_.to_ns = std::min(summed_.to_ns, missing.from_ns);
  }
  return summed;
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
  return Try([&] { return SumEnded(connection); });
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
