// SPDX-License-Identifier: Apache-2.0
#include "store/live/live_store.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string_view>
#include <utility>

#include "base/cancellation.h"
#include "base/log.h"
#include "base/time.h"
#include "model/tables/batches.h"
#include "model/tables/kernel_packs.h"
#include "model/tables/kernels.h"
#include "model/tables/memcpys.h"
#include "model/tables/metrics.h"
#include "model/tables/samples.h"
#include "model/tables/signals.h"
#include "model/tables/sources.h"
#include "spool/upload.h"
#include "store/duckdb/appender.h"
#include "store/duckdb/connection.h"
#include "store/duckdb/schema.h"
#include "store/each_row.h"
#include "store/live/live_database.h"
#include "store/live/shrink.h"
#include "store/recordings/attach.h"
#include "store/rollups/gpu_windows.h"
#include "store/rollups/rollup.h"
#include "store/rollups/sample_windows.h"
#include "store/rollups/windows.h"

namespace gpusonde::store {
namespace {

// How long frames are buffered without a query, and how many bytes of them: at 10,000 kernels a second
// some 40 MB would come in that time. A commit costs CPU time however little it adds (docs/decisions/0042),
// and takes several times the memory of what it adds.
constexpr int64_t kHoldNs = 120 * kNanosPerSecond;
constexpr int64_t kMaxHeldBytes = int64_t{16} << 20;

// How many of the newest days have views of their own: at midnight all that is recent is in the day before.
constexpr size_t kRecentDays = 2;
// What queries about a time may read before it: sessions and commits (SessionReach).
constexpr int64_t kReachNs = 3600 * kNanosPerSecond;

// Does nothing if there is no such file.
Status SetAside(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) == 0 || errno == ENOENT) return {};
  return Fail(ErrnoError(errno, fmt::format("set {} aside, which is damaged", from)));
}

std::string NameOf(Day day) { return spool::FormatDay(day.time_since_epoch().count()); }

std::string CatalogOf(Day day) { return "day " + NameOf(day); }

std::vector<std::string> Catalogs(std::span<const Day> days) {
  std::vector<std::string> catalogs;
  for (const Day day : days) catalogs.push_back(CatalogOf(day));
  return catalogs;
}

// When the machine that recorded the rows was last seen, by its own clock, which may differ from this one's;
// rows may also have waited in its spool. A run without an end ends there. Now, if no row has such a time.
int64_t LastSign(std::span<const model::Batch> frames) {
  constexpr std::pair<std::string_view, std::string_view> kSigns[] = {
      {model::kSamples.name(), "time_ns"},    {model::kMetrics.name(), "time_ns"},
      {model::kSignals.name(), "start_ns"},   {model::kKernels.name(), "end_ns"},
      {model::kKernelPacks.name(), "end_ns"}, {model::kMemcpys.name(), "end_ns"},
      {model::kSources.name(), "started_ns"}};
  std::optional<TimeRange> times;
  for (const model::Batch& frame : frames)
    for (const auto& [table, column] : kSigns)
      if (frame.table == table) Widen(frame, column, times);
  return times.has_value() ? times->to_ns : EpochNow();
}

model::Batch CommitRows(Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames) {
  model::BatchBuilder builder(model::kBatches);
  const int64_t sign_ns = LastSign(frames);
  for (const model::Batch& frame : frames)
    builder.Append({.spool = spool,
                    .sequence = first_sequence++,
                    .rows = static_cast<int64_t>(frame.rows),
                    .committed_ns = sign_ns});
  return builder.Take();
}

}  // namespace

class LiveStore::RecentDays final : public Store {
 public:
  explicit RecentDays(LiveStore& all) : all_(all) {}

  Status Append(std::span<const model::Batch> batches) override { return all_.Append(batches); }
  Result<std::unique_ptr<Rows>> Query(const std::string& sql,
                                      std::span<const Parameter> parameters) override {
    ASSIGN_OR_RETURN(duckdb::Connection connection, all_.OpenReader());
    TRY(connection.Run(fmt::format("USE {}", LiveDatabase::kRecent)));
    return duckdb::Connection::Query(std::move(connection), sql, parameters,
                                     duckdb::Connection::Allow::kReading);
  }
  TimeRange sample_windows() const override { return all_.sample_windows(); }
  TimeRange gpu_windows() const override { return all_.gpu_windows(); }
  uint64_t revision() override { return all_.revision(); }
  NameCache& names() override { return all_.names(); }

 private:
  LiveStore& all_;
};

LiveStore::LiveStore(std::string folder, Fd lock, const Options& options)
    : folder_(std::move(folder)),
      lock_(std::move(lock)),
      one_of_many_(options.one_of_many),
      epoch_now_(options.epoch_now),
      recent_(std::make_unique<RecentDays>(*this)),
      database_(std::make_unique<LiveDatabase>(folder_, options.min_free_bytes, options.one_of_many)),
      samples_(std::make_unique<Rollup>(SampleRollup(), options.epoch_now)),
      work_(std::make_unique<Rollup>(WorkRollup(options.epoch_now), options.epoch_now)) {}

LiveStore::~LiveStore() = default;

duckdb::Connection& LiveStore::writer() { return database_->writer(); }

Result<std::unique_ptr<LiveStore>> LiveStore::Open(const std::string& folder, const Options& options) {
  ASSIGN_OR_RETURN(Fd lock, LockFolder(folder));
  std::unique_ptr<LiveStore> store(new LiveStore(folder, std::move(lock), options));
  TRY(store->EnsureOpen());
  return store;
}

// Rows without sums can be read all the same, and a later append tries again to sum them: a minute with very
// much work needs more memory than there is, or the disk is full.
Status LiveStore::EnsureOpen() {
  const Cancellation none{std::stop_token()};  // others wait for this as well
  // What fails may retire the database. It isn't tried again at once (Rollup), so that the next one stays.
  while (!database_->is_open()) {
    TRY(database_->Open());
    Status opened = OpenFiles();
    // Without all files it must not be used: rows of a day that isn't attached would get a new, empty file.
    if (!opened.has_value()) {
      database_->Retire();
      return opened;
    }
    const Status room = database_->CheckRoom();
    for (Rollup* rollup : {samples_.get(), work_.get()}) {
      if (!database_->is_open()) break;
      Status summed = rollup->Start(writer(), room);
      // That the disk is full is said when rows are to be stored.
      if (room.has_value()) TrackSums(*rollup, std::move(summed));
    }
  }
  return {};
}

Status LiveStore::OpenFiles() {
  days_.clear();
  samples_->Reset();
  work_->Reset();
  TRY(OpenDays());
  TRY(RefreshViews());
  return LoadCommitted();
}

// Passes on what became of a write. A failure that leaves DuckDB's memory in doubt retires it.
Status LiveStore::RetireOnDamage(Status written) {
  if (!written.has_value() && database_->is_open() && LiveDatabase::IsDamaging(written.error()))
    database_->Retire();
  return written;
}

// Remembers what keeps rows from being stored, and logs when that begins and ends.
Status LiveStore::TrackProblem(Status stored) {
  if (stored.has_value() == !problem_.has_value()) return stored;
  if (stored.has_value()) {
    LogInfo("rows are stored again");
    problem_.reset();
  } else {
    LogWarn("rows stay in the spool: {}", stored.error().message);
    problem_ = Problem{.since_ns = EpochNow(), .message = stored.error().message};
  }
  return stored;
}

std::vector<std::string> LiveStore::notices() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> notices;
  for (const Damage& damage : damaged_) notices.push_back(damage.notice);
  if (problem_.has_value())
    notices.push_back(fmt::format("Nothing has been stored since {} UTC: {}.",
                                  FormatUtcClock(problem_->since_ns), problem_->message));
  for (const auto& [name, problem] : unsummed_)
    if (!problem.problem().empty())
      notices.push_back(
          fmt::format("Answers about long times are complete but slow, because {} are not summed: {}.", name,
                      problem.problem()));
  return notices;
}

std::string LiveStore::PathOf(Day day) const { return PathOfDay(folder_, day); }

Status LiveStore::OpenDays() {
  ASSIGN_OR_RETURN(const std::vector<Day> found, RecordedDays(folder_));
  for (const Day day : found) TRY(OpenDay(day));
  return {};
}

Status LiveStore::AttachDay(Day day) {
  TRY(AttachRecording(writer(), PathOf(day), CatalogOf(day), Access::kWriting));
  Status complete = duckdb::CreateTables(writer(), CatalogOf(day));
  for (Rollup* rollup : {samples_.get(), work_.get()})
    if (complete.has_value()) complete = rollup->Add(writer(), CatalogOf(day));
  if (!complete.has_value())
    static_cast<void>(writer().Run("DETACH " + duckdb::QuoteName(CatalogOf(day))));
  else
    days_.push_back(day);
  return complete;
}

// One bad file must not keep the others, and what comes next, from being kept; nor a bad log its file, which
// has all but the last minutes, as after a power cut.
Status LiveStore::OpenDay(Day day) {
  const std::string path = PathOf(day), log = LogOf(path);
  Status opened = AttachDay(day);
  if (opened.has_value() || opened.error().code != ErrorCode::kCorrupt) return opened;
  const std::string aside = DamagedNameOf(path);
  // First the log: alone, it would be taken for that of the next file of the day.
  TRY(SetAside(log, LogOf(aside)));
  if (std::filesystem::exists(LogOf(aside))) {
    const std::string why = opened.error().message;
    opened = AttachDay(day);
    if (opened.has_value())
      AddDamage(LogOf(aside),
                fmt::format("The last rows of {} could not be read: their log was set aside as {}: {}.",
                            NameOf(day), LogOf(aside), why));
    if (opened.has_value() || opened.error().code != ErrorCode::kCorrupt) return opened;
  }
  TRY(SetAside(path, aside));
  AddDamage(aside, fmt::format("The data of {} could not be read and was set aside as {}: {}.", NameOf(day),
                               aside, opened.error().message));
  return {};
}

void LiveStore::AddDamage(std::string path, std::string sentence) {
  LogWarn("{}", sentence);
  damaged_.push_back({std::move(path), std::move(sentence)});
}

// Returns the bytes that are free now.
int64_t LiveStore::DeleteDamaged(std::span<const DamagedFile> files) {
  int64_t bytes = 0;
  for (const auto& [path, size] : files) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
      LogError("retention: {}", ErrnoError(errno, "delete " + path).message);
      continue;
    }
    LogInfo("retention: deleted {}, which had been set aside as damaged", path);
    std::erase_if(damaged_, [&path](const Damage& damage) { return damage.path == path; });
    bytes += size;
  }
  return bytes;
}

// Attaches the day, creating its file if needed, and finishes the files of earlier days.
Status LiveStore::BeginDay(Day day) {
  if (std::ranges::binary_search(days_, day)) return {};
  Status begun = AddDay(day);
  // The views may lack the day.
  if (!begun.has_value()) database_->Retire();
  return begun;
}

Status LiveStore::AddDay(Day day) {
  for (const Day earlier : days_) TRY(writer().Run("CHECKPOINT " + duckdb::QuoteName(CatalogOf(earlier))));
  // Of a file that was deleted by hand: what it adds, and deletes by position, is that file's.
  if (const std::string log = LogOf(PathOf(day)); std::filesystem::exists(log)) {
    const std::string aside = LogOf(DamagedNameOf(PathOf(day)));
    TRY(SetAside(log, aside));
    AddDamage(
        aside,
        fmt::format(
            "The last rows of {} could not be read, as their file is gone: their log was set aside as {}.",
            NameOf(day), aside));
  }
  TRY(AttachNew(writer(), PathOf(day), CatalogOf(day), one_of_many_ ? Layout::kSmall : Layout::kDefault));
  days_.insert(std::ranges::upper_bound(days_, day), day);
  return RefreshViews();
}

Status LiveStore::RefreshViews() {
  const std::vector<std::string> catalogs = Catalogs(days_);
  TRY(duckdb::CreateViews(writer(), catalogs));
  recent_from_.reset();
  const auto begun = std::ranges::upper_bound(days_, DayOf(epoch_now_())) - days_.begin();
  // By a clock that is behind, all days are in the future.
  const size_t newest = begun == 0 ? days_.size() : static_cast<size_t>(begun);
  if (newest <= kRecentDays) return {};
  const size_t first = newest - kRecentDays;
  TRY(duckdb::CreateViews(writer(), std::span(catalogs).subspan(first), LiveDatabase::kRecent));
  recent_from_ = days_[first];
  return {};
}

Status LiveStore::LoadCommitted() {
  std::map<Id128, int64_t> committed;
  TRY(ForEachRow(writer().Ask("SELECT spool, max(sequence) FROM raw.batches GROUP BY spool"),
                 [&](const Rows& row) { committed[row.Id(0)] = row.Int64(1); }));
  // Also without what is there no more: a file that was set aside.
  committed_ = std::move(committed);
  return {};
}

Status LiveStore::Commit(Day day, Id128 spool, int64_t first_sequence, std::span<const model::Batch> frames) {
  const std::scoped_lock lock(mutex_);
  TRY(CommitHeldNow());
  return TrackProblem(CommitNow(day, spool, first_sequence, frames));
}

Status LiveStore::Hold(Day day, Id128 spool, int64_t first_sequence, std::vector<model::Batch> frames) {
  const std::scoped_lock lock(mutex_);
  const bool goes_on = held_.day == day && held_.spool == spool &&
                       held_.first_sequence + std::ssize(held_.frames) == first_sequence;
  const bool due = MonotonicNow() - held_.since_ns >= kHoldNs || held_.bytes >= kMaxHeldBytes;
  if (!goes_on || due) TRY(CommitHeldNow());
  if (held_.frames.empty())
    held_ = {.day = day,
             .spool = spool,
             .first_sequence = first_sequence,
             .since_ns = MonotonicNow(),
             .frames = {}};
  for (model::Batch& frame : frames) {
    held_.bytes += ShrinkToFit(frame);
    held_.frames.push_back(std::move(frame));
  }
  return {};
}

Status LiveStore::CommitHeld() {
  const std::scoped_lock lock(mutex_);
  return CommitHeldNow();
}

Status LiveStore::CommitHeldNow() {
  if (held_.frames.empty()) return {};
  const Cancellation none{std::stop_token()};
  TRY(TrackProblem(CommitNow(held_.day, held_.spool, held_.first_sequence, held_.frames)));
  held_ = {};
  return {};
}

Status LiveStore::CommitNow(Day day, Id128 spool, int64_t first_sequence,
                            std::span<const model::Batch> frames) {
  TRY(EnsureOpen());
  TRY(database_->CheckRoom());
  return RetireOnDamage(CommitFrames(day, spool, first_sequence, frames));
}

Status LiveStore::CommitFrames(Day day, Id128 spool, int64_t first_sequence,
                               std::span<const model::Batch> frames) {
  const auto known = committed_.find(spool);
  const int64_t known_through = known == committed_.end() ? 0 : known->second;
  const int64_t there = std::max<int64_t>(known_through - first_sequence + 1, 0);
  if (there >= std::ssize(frames)) return {};
  const bool gap = first_sequence > known_through + 1;
  frames = frames.subspan(static_cast<size_t>(there));
  first_sequence += there;
  TRY(BeginDay(day));
  const model::Batch commits = CommitRows(spool, first_sequence, frames);
  ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(writer()));
  TRY(duckdb::AppendNew(writer(), CatalogOf(day), model::kBatches.info(), {&commits, 1}));
  TRY(AppendWithWindows(day, frames, std::move(transaction)));
  committed_[spool] = first_sequence + std::ssize(frames) - 1;
  gap_ = gap_ || gap;
  return {};
}

int64_t LiveStore::CommittedThrough(Id128 spool) const {
  const std::scoped_lock lock(mutex_);
  const auto known = committed_.find(spool);
  return known == committed_.end() ? 0 : known->second;
}

bool LiveStore::TakeGap() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(gap_, false);
}

Status LiveStore::Append(std::span<const model::Batch> batches) {
  return AppendTo(DayOf(EpochNow()), batches);
}

Status LiveStore::AppendTo(Day day, std::span<const model::Batch> batches) {
  const std::scoped_lock lock(mutex_);
  TRY(EnsureOpen());
  const auto append = [&]() -> Status {
    TRY(BeginDay(day));
    ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(writer()));
    return AppendWithWindows(day, batches, std::move(transaction));
  };
  return RetireOnDamage(append());
}

// Rows mostly come in the order of their times and are summed once their windows are over. Where they come
// late (a spool that waited, a clock that stepped back) their windows are summed again.
Status LiveStore::AppendWithWindows(Day day, std::span<const model::Batch> batches,
                                    duckdb::Transaction transaction) {
  TRY(duckdb::AppendBatches(writer(), CatalogOf(day), batches));
  const std::optional<TimeRange> samples = samples_->TimesOf(batches);
  if (samples.has_value()) TRY(samples_->Correct(writer(), CatalogOf(day), *samples));
  const std::optional<TimeRange> work = work_->TimesOf(batches);
  if (work.has_value()) TRY(work_->Correct(writer(), CatalogOf(day), *work));
  TRY(transaction.Commit());
  written_ = day;
  ++revision_;
  names().Forget(batches);
  Advance(*work_, day, work);
  Advance(*samples_, day, samples);
  return {};
}

// The rows are committed whatever becomes of the sums, which the next append tries again.
void LiveStore::Advance(Rollup& rollup, Day day, const std::optional<TimeRange>& times) {
  if (!times.has_value() || !database_->is_open()) return;
  TrackSums(rollup, rollup.Advance(writer(), CatalogOf(day), *times));
}

// Remembers what keeps rows from being summed, and logs when that begins and ends.
void LiveStore::TrackSums(const Rollup& rollup, Status summed) {
  summed = RetireOnDamage(std::move(summed));
  ProblemLog& problem = unsummed_[rollup.name()];
  switch (problem.Set(summed.has_value() ? "" : summed.error().message)) {
    case ProblemLog::Change::kNone:
      break;
    case ProblemLog::Change::kBegan:
      LogWarn("{} are not summed: {}", rollup.name(), problem.problem());
      break;
    case ProblemLog::Change::kEnded:
      LogInfo("{} are summed again", rollup.name());
      break;
  }
}

TimeRange LiveStore::gpu_windows() const {
  const std::scoped_lock lock(mutex_);
  return work_->summed();
}

uint64_t LiveStore::revision() {
  const std::scoped_lock lock(mutex_);
  // A failure is logged and shown as a notice; what is stored can still be read.
  if (const Status committed = CommitHeldNow(); !committed.has_value())
    LogDebug("the revision omits rows that are not committed yet: {}", committed.error().message);
  return revision_;
}

TimeRange LiveStore::sample_windows() const {
  const std::scoped_lock lock(mutex_);
  return samples_->summed();
}

Result<duckdb::Connection> LiveStore::OpenReader() {
  std::shared_ptr<duckdb::Instance> instance;
  {
    const std::scoped_lock lock(mutex_);
    // Rows that can't be committed now (the disk is full) are in the spool; the rest is answered all the
    // same.
    if (const Status committed = CommitHeldNow(); !committed.has_value())
      LogDebug("the answer omits rows that are not committed yet: {}", committed.error().message);
    TRY(EnsureOpen());
    instance = database_->instance();
  }
  return duckdb::Connection::Open(std::move(instance));
}

Result<std::unique_ptr<Rows>> LiveStore::Query(const std::string& sql,
                                               std::span<const Parameter> parameters) {
  ASSIGN_OR_RETURN(duckdb::Connection connection, OpenReader());
  return duckdb::Connection::Query(std::move(connection), sql, parameters,
                                   duckdb::Connection::Allow::kReading);
}

Result<std::unique_ptr<Rows>> LiveStore::QueryWithin(const std::string& sql,
                                                     std::chrono::milliseconds limit) {
  ASSIGN_OR_RETURN(duckdb::Connection connection, OpenReader());
  return duckdb::Connection::Query(std::move(connection), sql, {}, duckdb::Connection::Allow::kReading,
                                   limit);
}

Store& LiveStore::Within(const TimeRange& range) {
  const std::scoped_lock lock(mutex_);
  if (!database_->is_open() || !recent_from_.has_value()) return *this;
  // Rows of a time are in the file of its day, or of a later one.
  const bool recent = range.from_ns >= kReachNs && DayOf(range.from_ns - kReachNs) >= *recent_from_;
  return recent ? static_cast<Store&>(*recent_) : *this;
}

int64_t LiveStore::BytesOf(Day day) const {
  int64_t bytes = 0;
  for (const std::string& path : {PathOf(day), LogOf(PathOf(day))}) {
    std::error_code missing;
    const auto size = std::filesystem::file_size(path, missing);
    if (!missing) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

Result<int> LiveStore::Retain(int max_days, int64_t max_bytes, const std::function<bool()>& is_stopping) {
  const std::scoped_lock lock(mutex_);
  TRY(EnsureOpen());
  if (max_days < 1)
    return Fail(ErrorCode::kInvalidArgument, fmt::format("keep {} days: at least one day is kept", max_days));
  if (days_.empty()) return 0;
  std::map<Day, std::vector<DamagedFile>> files = DamagedFilesIn(folder_);
  int64_t bytes = 0;
  for (const auto& [day, damaged] : files)
    for (const DamagedFile& file : damaged) bytes += file.bytes;
  for (const Day day : days_) {
    bytes += BytesOf(day);
    files.try_emplace(day);
  }
  const Day newest = NewestBelieved(days_, max_days);
  int deleted = 0;
  for (const auto& [day, damaged] : files) {
    const bool too_old =
        written_.has_value() && std::min(newest, *written_) - day >= std::chrono::days(max_days);
    if (is_stopping() || (!too_old && bytes <= max_bytes)) break;
    bytes -= DeleteDamaged(damaged);
    if (!too_old && bytes <= max_bytes) break;
    if (day == newest || day == written_ || !std::ranges::binary_search(days_, day)) continue;
    bytes -= BytesOf(day);
    if (Status gone = DeleteDay(day); !gone.has_value()) {
      // The day may be attached still, without being one of days_.
      database_->Retire();
      return Fail(std::move(gone).error());
    }
    ++deleted;
  }
  return deleted;
}

Status LiveStore::DeleteDay(Day day) {
  ++revision_;
  std::erase(days_, day);
  samples_->Forget(CatalogOf(day));
  work_->Forget(CatalogOf(day));
  TRY(RefreshViews());  // before the day goes: a view over what isn't there fails
  TRY(writer().Run("DETACH " + duckdb::QuoteName(CatalogOf(day))));
  // First the log, which would be taken for that of the next file of the day.
  for (const std::string& path : {LogOf(PathOf(day)), PathOf(day)})
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return Fail(ErrnoError(errno, "delete " + path));
  return {};
}

bool LiveStore::IsOpen() const {
  const std::scoped_lock lock(mutex_);
  return database_->is_open();
}

int64_t LiveStore::MemoryBytes() {
  const std::scoped_lock lock(mutex_);
  if (!database_->is_open()) return 0;
  const auto rows = writer().Ask("SELECT sum(memory_usage_bytes)::BIGINT FROM duckdb_memory()");
  return rows.has_value() && (*rows)->Next().value_or(false) ? (*rows)->Int64(0) : 0;
}

bool LiveStore::CloseFiles() {
  const std::scoped_lock lock(mutex_);
  if (!database_->is_open()) return true;
  if (const Status committed = CommitHeldNow(); !committed.has_value() || !database_->is_open()) return false;
  if (!database_->Close()) return false;
  names().Clear();
  return true;
}

std::vector<Day> LiveStore::days() const {
  const std::scoped_lock lock(mutex_);
  return days_;
}

}  // namespace gpusonde::store
