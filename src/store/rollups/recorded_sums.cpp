// SPDX-License-Identifier: Apache-2.0
#include "store/rollups/recorded_sums.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "store/rollups/gpu_windows.h"
#include "store/rollups/rollup.h"
#include "store/rollups/sample_windows.h"

namespace gpusonde::store {
namespace {

class SummedRecordings final : public Store {
 public:
  SummedRecordings(std::unique_ptr<Store> recordings, TimeRange samples, TimeRange work)
      : recordings_(std::move(recordings)), samples_(samples), work_(work) {}

  Status Append(std::span<const model::Batch> batches) override { return recordings_->Append(batches); }
  Result<std::unique_ptr<Rows>> Query(const std::string& sql,
                                      std::span<const Parameter> parameters) override {
    return recordings_->Query(sql, parameters);
  }
  TimeRange sample_windows() const override { return samples_; }
  TimeRange gpu_windows() const override { return work_; }
  void Interrupt() override { recordings_->Interrupt(); }
  void Resume() override { recordings_->Resume(); }

 private:
  std::unique_ptr<Store> recordings_;
  TimeRange samples_;
  TimeRange work_;
};

// The time for which the sums of every file include all of its rows.
Result<TimeRange> SummedInAll(Store& recordings, size_t files, const RollupTables& tables) {
  constexpr int64_t kFirst = std::numeric_limits<int64_t>::min(), kLast = std::numeric_limits<int64_t>::max();
  const Ask ask = [&recordings](const SqlPart& sql) { return recordings.Query(sql.text, sql.parameters); };
  const WindowLevel open = tables.traits().open;
  TimeRange complete{kFirst, kLast}, any{kLast, kFirst};
  for (size_t i = 0; i < files; ++i) {
    const Result<RollupTables::Stored> stored = tables.Read(ask, fmt::format("recording{}", i));
    // A file of an older gpusonde, which had no such tables: its rows are read instead of sums.
    if (!stored.has_value() && stored.error().message.starts_with("Catalog Error")) return TimeRange{};
    if (!stored.has_value()) return std::unexpected(stored.error());
    if (!stored->newest_ns.has_value()) continue;
    if (stored->oldest_ns.value_or(kFirst) < stored->summed.from_ns)
      complete.from_ns = std::max(complete.from_ns, stored->summed.from_ns);
    // Longer windows than the last ones of a file may not have been over when it was closed.
    if (stored->summed.to_ns < WindowStart(open, *stored->newest_ns) + open.length_ns)
      complete.to_ns = std::min(complete.to_ns, stored->summed.to_ns);
    any.from_ns = std::min(any.from_ns, stored->summed.from_ns);
    any.to_ns = std::max(any.to_ns, stored->summed.to_ns);
  }
  const TimeRange range{std::max(complete.from_ns, any.from_ns), std::min(complete.to_ns, any.to_ns)};
  return range.from_ns < range.to_ns ? range : TimeRange{};
}

}  // namespace

Result<std::unique_ptr<Store>> UseRecordedSums(std::unique_ptr<Store> recordings, size_t files) {
  ASSIGN_OR_RETURN(const TimeRange samples, SummedInAll(*recordings, files, *SampleRollup()));
  ASSIGN_OR_RETURN(const TimeRange work, SummedInAll(*recordings, files, *WorkRollup()));
  return std::make_unique<SummedRecordings>(std::move(recordings), samples, work);
}

}  // namespace gpusonde::store
