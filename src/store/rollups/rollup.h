// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "store/duckdb/connection.h"
#include "store/rollups/windows.h"
#include "store/sql/sql_part.h"
#include "store/store.h"

namespace gpusonde::store {

// One kind of rows, and the tables of their sums: samples (sample_windows.h), GPU work (gpu_windows.h). A
// catalog is one attached file. Thread-safe.
class RollupTables {
 public:
  struct Traits {
    std::string_view name;   // of the sums, for messages
    WindowLevel shortest;    // sums advance by whole windows of this level
    WindowLevel open;        // rows of a file in the current window of this level may still complete a window
    int64_t backlog_ns = 0;  // how long before the newest row the first sums begin
  };

  virtual ~RollupTables() = default;
  virtual Traits traits() const = 0;

  // First and last time of the rows in the batches, inclusive; nothing if there are none.
  virtual std::optional<TimeRange> TimesOf(std::span<const model::Batch> batches) const = 0;

  struct Stored {
    TimeRange summed;  // from the first window's start to the last one's end; empty without any
    std::optional<int64_t> newest_ns;  // of the rows
    std::optional<int64_t> oldest_ns;  // of the rows, or earlier
  };
  virtual Result<Stored> Read(const Ask& ask, std::string_view catalog) const = 0;

  // Computes the windows of every level that end in the range, from the committed rows of the catalog, in
  // transactions of its own. The range ends with a whole window of the shortest level.
  virtual Status Sum(duckdb::Connection& connection, std::string_view catalog,
                     const TimeRange& range) const = 0;

  // Called in the transaction that adds rows of these times to the catalog, some of them late: before
  // summed.to_ns. Either corrects the sums, or deletes those from some time on, which is returned: the rows
  // after it are summed again by Sum.
  virtual Result<int64_t> Correct(duckdb::Connection& connection, std::string_view catalog,
                                  const TimeRange& times, const TimeRange& summed) const = 0;
};

// Keeps the sums of one kind of rows in step with a store of several files. All files are summed until the
// same time, so that a query needs no more than `summed` to know where sums are complete. Not thread-safe.
class Rollup {
 public:
  // `epoch_now` is the wall clock, which may be stepped: nothing is summed that lies in the future by it.
  explicit Rollup(std::unique_ptr<const RollupTables> tables, std::function<int64_t()> epoch_now = EpochNow,
                  std::function<int64_t()> monotonic_now = MonotonicNow)
      : tables_(std::move(tables)),
        epoch_now_(std::move(epoch_now)),
        monotonic_now_(std::move(monotonic_now)) {}

  std::string_view name() const { return tables_->traits().name; }

  // The time range that is summed in every file; empty before there is any.
  const TimeRange& summed() const { return summed_; }

  // Forgets all files: none is open any more. A pause after an error goes on.
  void Reset();

  // Reads the sums in a file. Call for every file, then Start.
  Status Add(duckdb::Connection& connection, const std::string& catalog);

  // Starts with the sums in the files. Those of a store that was closed between them are brought to one end,
  // no further back than the backlog; then as Advance does. After an error `summed` is what every file has;
  // one in `may_write`, as of a disk without room, is returned as kUnavailable, and nothing is written.
  Status Start(duckdb::Connection& connection, const Status& may_write);

  std::optional<TimeRange> TimesOf(std::span<const model::Batch> batches) const {
    return tables_->TimesOf(batches);
  }

  // Corrects the sums for rows of these times, in the transaction that adds them to the catalog.
  Status Correct(duckdb::Connection& connection, std::string_view catalog, const TimeRange& times);

  // Call after that transaction: sums the windows that ended at least the allowed lateness before the newest
  // row. After an error a later call tries again, and those until then return its message as kUnavailable: a
  // minute that has too much work for the memory that there is takes long to fail.
  Status Advance(duckdb::Connection& connection, const std::string& catalog, const TimeRange& times);

  // The file is about to be deleted.
  void Forget(const std::string& catalog) { newest_ns_.erase(catalog); }

 private:
  // Runs `sum` unless there is a pause, and pauses after its error.
  Status Try(const std::function<Status()>& sum);
  Status SumMissing(duckdb::Connection& connection, const Status& may_write);
  Status SumEnded(duckdb::Connection& connection);

  std::unique_ptr<const RollupTables> tables_;
  std::function<int64_t()> epoch_now_;
  std::function<int64_t()> monotonic_now_;
  Status last_;                                         // of the last try
  int64_t retry_ns_ = 0;                                // monotonic
  std::map<std::string, RollupTables::Stored> stored_;  // by catalog; of the files until Start
  TimeRange summed_;
  std::map<std::string, int64_t> newest_ns_;  // of the rows, by catalog
};

}  // namespace gpusonde::store
