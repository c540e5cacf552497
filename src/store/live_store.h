// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"
#include "model/batch.h"
#include "store/store.h"
#include "store/time_range.h"

namespace gpusonde::store {

class LiveDatabase;

namespace duckdb {
class Connection;
class Transaction;
}  // namespace duckdb

// A day of UTC.
using Day = std::chrono::sys_days;

// The day of a time, ns since the epoch.
Day DayOf(int64_t epoch_ns);

// What `gpusonde up` keeps: a folder with one recording per day, YYYY-MM-DD.sonde, read as one store.
//
// Every day stands for itself: the rows that its facts point to (processes, stacks, locations, …) must be
// committed to that day too, so whoever emits rows forgets at midnight what it has already told.
//
// The files are locked while the store is open; afterwards any DuckDB client reads them. What Commit has
// returned for survives kill -9 and power cuts; what Hold has taken does once CommittedThrough says so.
// Thread-safe.
class LiveStore : public Store {
 public:
  // Makes the folder (mode 0700; its parent must be there) or opens what is in it. A day's file that is
  // damaged is renamed to *.damaged and reported by notices(). Errors: kUnavailable when another gpusonde has
  // the folder open; kTooNew; kPermissionDenied, kOutOfSpace, kIo.
  struct Options {
    int64_t min_free_bytes = 0;  // nothing is stored while the file system has less than this left
  };
  static Result<std::unique_ptr<LiveStore>> Open(const std::string& folder, const Options& options);
  static Result<std::unique_ptr<LiveStore>> Open(const std::string& folder) {
    return Open(folder, Options{});
  }

  // Adds the rows of a spool's frames first_sequence, first_sequence + 1, … to the day, all or none. Frames
  // at or below CommittedThrough(spool) are left out, so that replaying a spool adds nothing twice. Errors:
  // kCorrupt for an inconsistent batch, kOutOfSpace, kIo.
  Status Commit(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);

  // Takes frames to add them later, as Commit does: before the next query is answered, when half a minute's
  // worth or many bytes are held, or by CommitHeld. A commit costs some 20 ms of CPU time however little it
  // adds (bench/store_bench.cpp, CommitASecond), so nobody should commit every second of a machine on which
  // nobody looks. Until CommittedThrough tells of them the frames are in memory only: their spool has to keep
  // them. Errors: those of a commit that is due; then these frames were not taken, and those that are held
  // are tried again.
  Status Hold(Day day, Id128 spool, int64_t first_sequence, std::vector<model::Batch> frames);
  Status CommitHeld();

  // The last frame of the spool that is in the store's files; 0 when none is.
  int64_t CommittedThrough(Id128 spool) const;

  // Deletes the oldest days: those `max_days` or more before the newest one, and then as many as it takes for
  // the rest to fit into `max_bytes`. The newest day always stays. Queries under way still see the days that
  // go. Returns how many went.
  Result<int> Retain(int max_days, int64_t max_bytes);

  std::vector<Day> days() const;

  // Sentences for a person: which files were damaged, and since when and why nothing is stored.
  std::vector<std::string> notices() const;

  // Adds to the present day.
  Status Append(std::span<const model::Batch> batches) override;
  Result<std::unique_ptr<Rows>> Query(const std::string& sql,
                                      std::span<const Parameter> parameters = {}) override;
  int64_t windows_end_ns() const override;
  TimeRange gpu_windows() const override;
  // Commits what is held first, so it counts that, too.
  uint64_t revision() override;

  ~LiveStore() override;

 private:
  LiveStore(std::string folder, Fd lock, int64_t min_free_bytes);
  duckdb::Connection& writer();
  Status EnsureOpen();
  Status OpenFiles();
  Status Guard(Status written);
  Status Note(Status stored);
  std::string PathOf(Day day) const;
  Status OpenDays();
  Status OpenDay(Day day);
  Status BeginDay(Day day);
  Status RefreshViews();
  Status LoadCommitted();
  Status LoadWindows();
  Status CommitNow(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);
  Status CommitFrames(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);
  Status CommitHeldNow();
  Status AppendWithWindows(Day day, std::span<const model::Batch> batches, duckdb::Transaction transaction);
  Status CloseWindows();
  Status LoadGpuWindows();
  Status CloseGpuWindows();
  Status SumWindowsOf(Day day, const TimeRange& range, int64_t end_ns);
  Status DeleteDay(Day day);
  int64_t BytesOf(Day day) const;

  std::string folder_;
  Fd lock_;

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<LiveDatabase> database_;
  std::vector<std::string> damaged_;  // notices about files that were set aside
  struct Trouble {
    int64_t since_ns = 0;  // epoch
    std::string message;
  };
  std::optional<Trouble> trouble_;      // why nothing is stored now
  std::vector<Day> days_;               // attached; rising
  std::map<Id128, int64_t> committed_;  // by spool
  struct Held {
    Day day;
    Id128 spool;
    int64_t first_sequence = 0;
    int64_t since_ns = 0;  // monotonic
    int64_t bytes = 0;
    std::vector<model::Batch> frames;  // without gaps from first_sequence on
  };
  Held held_;
  int64_t windows_end_ns_ = 0;        // all windows that end until then are in their day's file
  std::map<Day, int64_t> newest_ns_;  // of the samples of each day's file
  TimeRange gpu_windows_;             // likewise of GPU work; empty before there is any
  std::map<Day, int64_t> newest_work_ns_;
  uint64_t revision_ = 0;  // transactions and deleted days since it was opened
};

}  // namespace gpusonde::store
