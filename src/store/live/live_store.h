// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/id128.h"
#include "base/problem_log.h"
#include "base/result.h"
#include "base/time.h"
#include "model/batch.h"
#include "store/live/day_files.h"
#include "store/store.h"

namespace gpusonde::store {

class LiveDatabase;
class Rollup;

namespace duckdb {
class Connection;
class Transaction;
}  // namespace duckdb

// The store of `gpusonde up`: a folder with one recording per day, YYYY-MM-DD.sonde, read as one store.
//
// Each day is self-contained: the rows that its facts refer to (processes, stacks, locations, …) must be
// committed to the same day, so agents write them anew at midnight.
//
// The files are locked while the store is open; afterwards any DuckDB client can read them. Frames survive
// kill -9 and power cuts once Commit has returned, or once CommittedThrough covers them if they were given to
// Hold. Thread-safe.
class LiveStore : public Store {
 public:
  struct Options {
    int64_t min_free_bytes = 0;  // nothing is stored while the file system has less than this left
    bool one_of_many = false;    // in its process: takes less memory and no thread, and queries one CPU
    std::function<int64_t()> epoch_now = EpochNow;  // tests have one that is stepped
  };
  // Creates the folder (mode 0700; its parent must exist) or opens an existing one. A damaged file is renamed
  // to *.damaged, with its log, and reported by notices(). Errors: kUnavailable when another gpusonde has the
  // folder open; kTooNew; kPermissionDenied, kOutOfSpace, kIo.
  static Result<std::unique_ptr<LiveStore>> Open(const std::string& folder, const Options& options);
  static Result<std::unique_ptr<LiveStore>> Open(const std::string& folder) {
    return Open(folder, Options{});
  }

  // Adds the rows of a spool's frames first_sequence, first_sequence + 1, … to the day, all or none. Frames
  // at or below CommittedThrough(spool) are left out, so that replaying a spool adds nothing twice. Errors:
  // kCorrupt for an inconsistent batch, kOutOfSpace, kIo.
  Status Commit(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);

  // Buffers frames and commits them later, as Commit does: before the next query, when two minutes' worth or
  // many bytes are buffered, or by CommitHeld. A commit costs some 20 ms of CPU time however little it
  // adds (bench/store_bench.cpp, CommitASecond), too much for every second of a machine that nobody looks at.
  // Buffered frames are in memory only: the spool has to keep them until CommittedThrough covers them.
  // Errors: those of a commit that is due; these frames are then not accepted, and the buffered ones are
  // retried.
  Status Hold(Day day, Id128 spool, int64_t first_sequence, std::vector<model::Batch> frames);
  Status CommitHeld();

  // The sequence number of the spool's last committed frame; 0 if there is none.
  int64_t CommittedThrough(Id128 spool) const;

  // Whether frames have been committed since the last call without the ones before them, as after a day's
  // file was set aside: their rows may refer to names that aren't here.
  bool TakeGap();

  // Deletes days that are `max_days` or more older than the newest one (NewestBelieved) and the one last
  // written to, then the oldest ones until the rest fits into `max_bytes`. Those two days always stay. Before
  // anything is written, what day it is isn't known, and no day is too old. Damaged files that were set aside
  // count and go with their day; those of the days that stay only for want of bytes.
  // Running queries still see deleted days. Ends early, between two days, once `is_stopping`: one may take
  // seconds. Returns the number of deleted days.
  Result<int> Retain(
      int max_days, int64_t max_bytes, const std::function<bool()>& is_stopping = [] { return false; });

  std::vector<Day> days() const;

  // Whether its files are open, and the bytes of memory that DuckDB says it takes for them.
  bool IsOpen() const;
  int64_t MemoryBytes();

  // Closes the files, unless a query reads them: their memory, and that of the names that were read from
  // them, is free until the next use, which opens them again. Returns whether they are closed.
  bool CloseFiles();

  // Sentences for the page: damaged files, since when and why nothing is stored, and why rows are not summed.
  std::vector<std::string> notices() const;

  // Appends to today's file.
  Status Append(std::span<const model::Batch> batches) override;
  // Appends rows of no spool to the file of a day.
  Status AppendTo(Day day, std::span<const model::Batch> batches);
  Result<std::unique_ptr<Rows>> Query(const std::string& sql,
                                      std::span<const Parameter> parameters = {}) override;
  // The same for a statement of somebody else, which fails with kUnavailable when it takes longer.
  Result<std::unique_ptr<Rows>> QueryWithin(const std::string& sql, std::chrono::milliseconds limit);
  // The two newest days and those in the future, of a clock that was wrong, where there are more and the time
  // is in them: to plan a query over 31 small days took eight times as long as over one.
  Store& Within(const TimeRange& range) override;
  TimeRange sample_windows() const override;
  TimeRange gpu_windows() const override;
  // Commits buffered frames first, so that they count.
  uint64_t revision() override;

  ~LiveStore() override;

 private:
  class RecentDays;

  LiveStore(std::string folder, Fd lock, const Options& options);
  duckdb::Connection& writer();
  Result<duckdb::Connection> OpenReader();
  Status EnsureOpen();
  Status OpenFiles();
  Status RetireOnDamage(Status written);
  Status TrackProblem(Status stored);
  std::string PathOf(Day day) const;
  Status OpenDays();
  Status OpenDay(Day day);
  Status AttachDay(Day day);
  void AddDamage(std::string path, std::string sentence);
  int64_t DeleteDamaged(std::span<const DamagedFile> files);
  Status BeginDay(Day day);
  Status AddDay(Day day);
  Status RefreshViews();
  Status LoadCommitted();
  Status CommitNow(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);
  Status CommitFrames(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames);
  Status CommitHeldNow();
  Status AppendWithWindows(Day day, std::span<const model::Batch> batches, duckdb::Transaction transaction);
  void Advance(Rollup& rollup, Day day, const std::optional<TimeRange>& times);
  void TrackSums(const Rollup& rollup, Status summed);
  Status DeleteDay(Day day);
  int64_t BytesOf(Day day) const;

  std::string folder_;
  Fd lock_;
  const bool one_of_many_;
  const std::function<int64_t()> epoch_now_;
  const std::unique_ptr<RecentDays> recent_;

  mutable std::mutex mutex_;  // guards what follows
  std::unique_ptr<LiveDatabase> database_;
  struct Damage {
    std::string path;  // where a file was set aside
    std::string notice;
  };
  std::vector<Damage> damaged_;
  struct Problem {
    int64_t since_ns = 0;  // epoch
    std::string message;
  };
  std::optional<Problem> problem_;      // why nothing is stored now
  std::vector<Day> days_;               // attached; rising
  std::optional<Day> recent_from_;      // the first one of the recent days' views; empty: there are none
  std::optional<Day> written_;          // the last one that rows were added to
  std::map<Id128, int64_t> committed_;  // by spool
  bool gap_ = false;                    // TakeGap's
  struct Held {
    Day day;
    Id128 spool;
    int64_t first_sequence = 0;
    int64_t since_ns = 0;  // monotonic
    int64_t bytes = 0;
    std::vector<model::Batch> frames;  // without gaps from first_sequence on
  };
  Held held_;
  std::unique_ptr<Rollup> samples_;  // whose sums are in the days' files
  std::unique_ptr<Rollup> work_;
  std::map<std::string_view, ProblemLog> unsummed_;  // by what is summed
  uint64_t revision_ = 0;                            // transactions and deleted days since it was opened
};

}  // namespace gpusonde::store
