// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/utf8.h"
#include "model/schema.h"
#include "spool/spool.h"
#include "store/duckdb/appender.h"
#include "store/duckdb/connection.h"
#include "store/duckdb/duckdb_store.h"
#include "store/duckdb/library.h"
#include "store/duckdb/schema.h"
#include "store/recordings/attach.h"

namespace gpusonde::store {
namespace {

constexpr const char* kCatalog = "recording";

// Rows between two commits of WriteRecording. Each commit makes row groups final, and one is 122,880 rows.
constexpr size_t kRowsPerCommit = 1'000'000;
// Rows between two looks at the size of the file; a commit's rows take some 100 MB.
constexpr size_t kRowsPerSizeCheck = 200'000;

duckdb::Settings SettingsBeside(const std::string& path, int threads = duckdb::Settings().threads) {
  return {.threads = threads, .temporary_folder = path + ".tmp-files"};
}

// The appenders of a recording that is being written, one per table that had rows.
class RecordingWriter {
 public:
  explicit RecordingWriter(duckdb::Connection& connection) : connection_(&connection) {}

  Status Append(const model::Batch& batch) {
    const model::TableInfo* table = model::FindTable(batch.table);
    if (table == nullptr) return {};  // of a newer program
    ASSIGN_OR_RETURN(duckdb::TableAppender * appender, AppenderOf(*table));
    TRY(appender->Append(batch));
    if (const auto staged = staged_.find(table); staged != staged_.end()) staged->second += batch.rows;
    rows_ += batch.rows;
    return rows_ < kRowsPerCommit ? Status{} : Commit();
  }

  Status Finish() {
    TRY(Commit());
    for (const auto& [table, rows] : staged_) TRY(duckdb::MoveStaged(*connection_, *table, kCatalog, rows));
    return {};
  }

 private:
  struct Open {
    const model::TableInfo* table;
    duckdb::TableAppender appender;
  };

  Result<duckdb::TableAppender*> AppenderOf(const model::TableInfo& table) {
    const auto found = std::ranges::find(open_, &table, &Open::table);
    if (found != open_.end()) return &found->appender;
    if (!transaction_.has_value()) {
      ASSIGN_OR_RETURN(duckdb::Transaction transaction, duckdb::Transaction::Begin(*connection_));
      transaction_.emplace(std::move(transaction));
    }
    const bool keyed = table.key_columns > 0;
    if (keyed && !staged_.contains(&table)) {
      TRY(duckdb::CreateStaging(*connection_, table, kCatalog));
      staged_[&table] = 0;
    }
    ASSIGN_OR_RETURN(
        duckdb::TableAppender appender,
        duckdb::TableAppender::Create(*connection_, table, keyed ? "temp" : kCatalog,
                                      keyed ? duckdb::StagingName(table) : std::string(table.name)));
    return &open_.emplace_back(&table, std::move(appender)).appender;
  }

  Status Commit() {
    for (Open& open : open_) TRY(open.appender.Finish());
    open_.clear();
    rows_ = 0;
    if (!transaction_.has_value()) return {};
    TRY(transaction_->Commit());
    transaction_.reset();
    return {};
  }

  duckdb::Connection* connection_;
  std::optional<duckdb::Transaction> transaction_;
  std::vector<Open> open_;
  std::map<const model::TableInfo*, size_t> staged_;  // and their rows
  size_t rows_ = 0;
};

// Of its files, as far as they can be seen.
int64_t BytesIn(const std::string& folder) {
  int64_t bytes = 0;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed)) {
    std::error_code gone;
    if (const auto size = entry->file_size(gone); !gone) bytes += static_cast<int64_t>(size);
  }
  return bytes;
}

Status CheckSize(const std::string& path, uint64_t max_bytes) {
  uint64_t bytes = 0;
  for (const char* suffix : {"", ".wal"}) {
    std::error_code absent;
    if (const auto size = std::filesystem::file_size(path + suffix, absent); !absent) bytes += size;
  }
  if (bytes <= max_bytes) return {};
  return Fail(ErrorCode::kOutOfSpace, fmt::format("{} would exceed its limit of {:.1f} MB", path,
                                                  static_cast<double>(max_bytes) / 1e6));
}

// What fills a recording: see WriteRecording.
struct Contents {
  std::function<Status(const BatchSink& sink)> produce;
  std::function<Status(Store& store)> complete = nullptr;
};

// Returns the database, to which the complete file is still attached.
Result<std::shared_ptr<duckdb::Instance>> WriteFile(const std::string& path, const RecordingSize& size,
                                                    const Contents& contents) {
  ASSIGN_OR_RETURN(auto instance,
                   duckdb::Instance::Create(SettingsBeside(path, ThreadsFor(size.expected_bytes))));
  ASSIGN_OR_RETURN(duckdb::Connection connection, duckdb::Connection::Open(instance));
  TRY(AttachTemporary(connection, path, kCatalog, static_cast<int64_t>(size.expected_bytes)));
  RecordingWriter writer(connection);
  size_t rows = 0;
  const auto append = [&](const model::Batch& batch) -> Status {
    TRY(writer.Append(batch));
    rows += batch.rows;
    if (rows < kRowsPerSizeCheck) return {};
    rows = 0;
    return CheckSize(path, size.max_bytes);
  };
  TRY(contents.produce(append));
  TRY(writer.Finish());
  if (contents.complete != nullptr) {
    TRY(duckdb::CreateViews(connection, std::vector<std::string>{kCatalog}));
    ASSIGN_OR_RETURN(const auto store, duckdb::DuckDbStore::Create(instance, kCatalog));
    TRY(contents.complete(*store));
  }
  TRY(connection.Run(fmt::format("CHECKPOINT {}", kCatalog)));
  TRY(CheckSize(path, size.max_bytes));
  return instance;
}

void RemoveFileAndLog(const std::string& path) {
  ::unlink(path.c_str());
  ::unlink((path + ".wal").c_str());
}

Status SyncFile(const std::string& path) {
  ASSIGN_OR_RETURN(const Fd fd, Open(path, O_RDONLY));
  if (::fsync(fd.get()) != 0) return Fail(ErrnoError(errno, "fsync " + path));
  return {};
}

Status Replace(const std::string& path, const std::string& by) {
  TRY(SyncFile(by));
  if (::rename(by.c_str(), path.c_str()) != 0) return Fail(ErrnoError(errno, "rename to " + path));
  return {};
}

Result<std::unique_ptr<Store>> CreateStore(const std::string& path, const duckdb::Settings& settings) {
  ASSIGN_OR_RETURN(auto instance, duckdb::Instance::Create(settings));
  ASSIGN_OR_RETURN(duckdb::Connection connection, duckdb::Connection::Open(instance));
  TRY(AttachNew(connection, path, kCatalog));
  TRY(duckdb::CreateViews(connection, std::vector<std::string>{kCatalog}));
  return duckdb::DuckDbStore::Create(std::move(instance), kCatalog);
}

// Whether the file is what a killed process left of a recording: empty, or a database.
bool IsLeftover(const std::string& path) {
  constexpr std::string_view kMagic = "DUCK";
  constexpr off_t kMagicAt = 8;  // behind a checksum
  const Result<Fd> file = Open(path, O_RDONLY);
  std::array<char, kMagic.size()> bytes{};
  if (!file.has_value()) return false;
  const ssize_t got = ::pread(file->get(), bytes.data(), bytes.size(), kMagicAt);
  return got == 0 || std::string_view(bytes.data(), bytes.size()) == kMagic;
}

// A name beside `path` that no file of the user's has.
std::string TemporaryFor(const std::string& path) {
  std::string name = path + ".tmp";
  std::error_code ignored;
  for (int number = 2; std::filesystem::exists(name, ignored) && !IsLeftover(name); ++number)
    name = fmt::format("{}.tmp{}", path, number);
  return name;
}

// Returns the database, to which the recording is still attached.
Result<std::shared_ptr<duckdb::Instance>> PlaceFile(const std::string& path, const RecordingSize& size,
                                                    const Contents& contents) {
  TRY(CheckReplaceable(path));
  const std::string temporary = TemporaryFor(path);
  RemoveFileAndLog(temporary);
  auto written = WriteFile(temporary, size, contents);
  Status placed = written.has_value() ? Replace(path, temporary) : Fail(written.error());
  if (!placed.has_value()) {
    RemoveFileAndLog(temporary);
    return Fail(std::move(placed).error());
  }
  TRY(SyncFolderOf(path));
  return written;
}

struct PlacedSpool {
  std::shared_ptr<duckdb::Instance> instance;
  int64_t frames = 0;
};

Result<PlacedSpool> PlaceSpool(const std::string& spool_folder, const std::string& path) {
  PlacedSpool placed;
  const RecordingSize size{.expected_bytes = static_cast<uint64_t>(BytesIn(spool_folder))};
  auto instance = PlaceFile(
      path, size, {.produce = [&](const BatchSink& sink) -> Status {
        const auto append = [&](int64_t /*sequence*/, const model::Batch& batch) { return sink(batch); };
        ASSIGN_OR_RETURN(const spool::ReadSummary summary, spool::Read(spool_folder, 0, append));
        placed.frames = summary.frames;
        return {};
      }});
  if (!instance.has_value()) return Fail(std::move(instance).error().With("write recording " + path));
  placed.instance = *std::move(instance);
  return placed;
}

}  // namespace

Status WriteRecording(const std::string& path, const RecordingSize& size,
                      const std::function<Status(const BatchSink& sink)>& produce,
                      const std::function<Status(Store& store)>& complete) {
  TRY(PlaceFile(path, size, {.produce = produce, .complete = complete}));
  return {};
}

Result<int64_t> WriteRecording(const std::string& spool_folder, const std::string& path) {
  ASSIGN_OR_RETURN(const PlacedSpool placed, PlaceSpool(spool_folder, path));
  return placed.frames;
}

Result<std::unique_ptr<Store>> WriteAndReadRecording(const std::string& spool_folder,
                                                     const std::string& path) {
  ASSIGN_OR_RETURN(PlacedSpool placed, PlaceSpool(spool_folder, path));
  ASSIGN_OR_RETURN(duckdb::Connection connection, duckdb::Connection::Open(placed.instance));
  TRY(duckdb::CreateViews(connection, std::vector<std::string>{kCatalog}));
  return duckdb::DuckDbStore::Create(std::move(placed.instance), "");
}

Result<std::unique_ptr<Store>> CreateRecording(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0)
    return Fail(ErrorCode::kInvalidArgument, path + " exists; delete it or choose another name");
  Result<std::unique_ptr<Store>> store = CreateStore(path, SettingsBeside(path));
  if (!store.has_value()) return Fail(std::move(store).error().With("create recording " + path));
  return store;
}

Result<std::unique_ptr<Store>> CreateInMemory() { return CreateStore(":memory:", {}); }

Status CheckRecordingName(const std::string& path) {
  if (IsUtf8(path)) return {};
  return Fail(
      ErrorCode::kInvalidArgument,
      fmt::format("{}: the name is not UTF-8, which the database needs; choose another", ToUtf8(path)));
}

Status LoadDatabase() {
  TRY(duckdb::LoadLibrary());
  return {};
}

Result<std::unique_ptr<Store>> OpenRecordings(const std::vector<std::string>& paths) {
  ASSIGN_OR_RETURN(auto instance, OpenForReading(paths, ""));
  return duckdb::DuckDbStore::Create(std::move(instance), "");
}

}  // namespace gpusonde::store
