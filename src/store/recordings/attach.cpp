// SPDX-License-Identifier: Apache-2.0
#include "store/recordings/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

#include "base/fd.h"
#include "base/shell_word.h"
#include "base/utf8.h"
#include "model/schema.h"
#include "store/duckdb/schema.h"
#include "store/recordings/recording.h"

namespace gpusonde::store {
namespace {

// The begin of a DuckDB file (its src/include/duckdb/storage/storage_info.hpp, unchanged since 0.10): three
// blocks of 4096 bytes, each with a checksum of 8 first. The main header has "DUCK" and a version; of the two
// database headers the one with the larger iteration holds.
constexpr size_t kHeaderBytes = 4096;
constexpr size_t kHeaders = 3;
constexpr std::string_view kDuckDbMagic = "DUCK";
constexpr size_t kMagicOffset = 8;
// Within a database header: iteration, meta block, free list, block count, block size; 8 bytes each.
constexpr size_t kIterationOffset = 8;
constexpr size_t kBlockCountOffset = 32;
constexpr size_t kBlockSizeOffset = 40;

struct Magic {
  std::string_view bytes;
  std::string_view meaning;
};

constexpr std::array kForeign = {
    Magic{"SQLite format 3", "a SQLite database"},
    Magic{"\x7f"
          "ELF",
          "an ELF program or library"},
    Magic{"PAR1", "a Parquet file"},
    Magic{"\x1f\x8b", "gzip-compressed data"},
    Magic{"\x28\xb5\x2f\xfd", "zstd-compressed data"},
    Magic{"PK\x03\x04", "a zip archive"},
    Magic{"gpusonde",
          "a spool segment; `gpusonde record --recover -o FILE` makes a recording of the folder FILE.spool"},
    Magic{"{", "JSON or other text"},
};

std::string_view Guess(std::string_view begin) {
  for (const Magic& magic : kForeign)
    if (begin.starts_with(magic.bytes)) return magic.meaning;
  const bool has_control = std::ranges::any_of(
      begin, [](unsigned char c) { return c < 0x20 && c != '\n' && c != '\r' && c != '\t'; });
  while (!begin.empty() && static_cast<unsigned char>(begin.back()) >= 0x80)
    begin.remove_suffix(1);  // cut there
  return !has_control && IsUtf8(begin) && !begin.empty() ? "a text file" : "something else";
}

uint64_t Load(std::string_view bytes, size_t at) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// Bytes of a file that has all blocks that the headers count.
uint64_t FullBytes(std::string_view headers) {
  if (headers.size() < kHeaders * kHeaderBytes) return kHeaders * kHeaderBytes;
  std::string_view current = headers.substr(kHeaderBytes, kHeaderBytes);
  const std::string_view other = headers.substr(2 * kHeaderBytes, kHeaderBytes);
  if (Load(other, kIterationOffset) > Load(current, kIterationOffset)) current = other;
  return headers.size() + Load(current, kBlockCountOffset) * Load(current, kBlockSizeOffset);
}

struct FileBytes {
  uint64_t present = 0;
  uint64_t full = 0;
};

// Of a recording that isn't there: perhaps its recorder was killed, or isn't done.
Error Unfinished(std::string_view recording) {
  return {ErrorCode::kNotFound,
          fmt::format("{} is not finished: it is being recorded, or its recorder was killed and "
                      "`gpusonde record --recover -o {}` finishes it",
                      recording, ShellWord(recording))};
}

// Checks that the file is a DuckDB database as far as its first bytes tell.
Result<FileBytes> Inspect(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) {
    const int failure = errno;
    if (failure == ENOENT && path == "-")
      return Fail(ErrorCode::kInvalidArgument, "-: standard input is not read; save it to a file");
    if (std::optional<Error> why = WhyAbsent(path); failure == ENOENT && why.has_value())
      return Fail(*std::move(why));
    return Fail(ErrnoError(failure, "open recording " + path));
  }
  const auto corrupt = [&](std::string_view what) {
    return Fail(ErrorCode::kCorrupt, fmt::format("{} is no recording: {}", path, what));
  };
  if (S_ISDIR(status.st_mode) && path.ends_with(kSpoolEnding))
    return Fail(Unfinished(std::string_view(path).substr(0, path.size() - kSpoolEnding.size())));
  if (S_ISDIR(status.st_mode)) return corrupt("it is a folder; name the files in it");
  if (!S_ISREG(status.st_mode)) return corrupt("it is no regular file");
  ASSIGN_OR_RETURN(const Fd fd, Open(path, O_RDONLY));
  std::string headers(kHeaderBytes * kHeaders, '\0');
  const ssize_t count = ::pread(fd.get(), headers.data(), headers.size(), 0);
  if (count < 0) return Fail(ErrnoError(errno, "read " + path));
  if (count == 0) return corrupt("it is empty");
  headers.resize(static_cast<size_t>(count));
  if (headers.size() < kMagicOffset + kDuckDbMagic.size() ||
      headers.compare(kMagicOffset, kDuckDbMagic.size(), kDuckDbMagic) != 0)
    return corrupt(fmt::format("it looks like {}", Guess(std::string_view(headers).substr(0, 256))));
  return FileBytes{static_cast<uint64_t>(status.st_size), FullBytes(headers)};
}

// Whether every block that holds rows lies within the file. Blocks at its end that the header counts may
// rightly be missing when they are free: a database that was killed in a checkpoint leaves such.
Result<bool> HoldsItsRows(duckdb::Connection& connection, std::string_view catalog, uint64_t present_bytes) {
  for (const model::TableInfo& table : model::AllTables()) {
    const auto rows = connection.Ask(
        fmt::format("SELECT max(greatest(block_id, list_max(additional_block_ids))), any_value(block_size) "
                    "FROM pragma_storage_info({}), pragma_database_size() WHERE database_name = {}",
                    duckdb::QuoteText(fmt::format("{}.main.{}", duckdb::QuoteName(catalog), table.name)),
                    duckdb::QuoteText(catalog)));
    if (!rows.has_value() && rows.error().message.starts_with("Catalog Error")) continue;  // an older file
    if (!rows.has_value()) return false;
    ASSIGN_OR_RETURN(const bool any, (*rows)->Next());
    if (!any || (*rows)->IsNull(0) || (*rows)->Int64(0) < 0) continue;
    const auto block = static_cast<uint64_t>((*rows)->Int64(0));
    const auto block_bytes = static_cast<uint64_t>((*rows)->Int64(1));
    if (kHeaders * kHeaderBytes + (block + 1) * block_bytes > present_bytes) return false;
  }
  return true;
}

// Rows that are not in the file yet take a block of memory for each column that they have.
constexpr std::string_view kSmallBlocks = ", BLOCK_SIZE 16384";
// The formats before keep 3 kB of statistics for each of some 400 columns, rows or not; this one 64 bytes.
// DuckDB 1.2 (February 2025) reads it.
constexpr std::string_view kFewStatistics = ", STORAGE_VERSION 'v1.2.0'";
// Of a file to which rows are added again and again: whenever its log is merged into it, the last row group
// of a table is compressed anew unless it is full. DuckDB's own 122,880 rows of kernel_packs are 13 minutes
// of 10,000 kernels a second.
constexpr std::string_view kSmallRowGroups = ", ROW_GROUP_SIZE 16384";

Status Attach(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
              Access access, std::string_view options = "") {
  return connection.Run(fmt::format("ATTACH {} AS {} (TYPE duckdb{}{})", duckdb::QuoteText(path),
                                    duckdb::QuoteName(catalog),
                                    access == Access::kReading ? ", READ_ONLY" : "", options));
}

// What runs SQL of the file's author when it is read. Recordings consist of tables alone.
Status CheckOnlyTables(duckdb::Connection& connection, std::string_view catalog) {
  ASSIGN_OR_RETURN(
      const auto rows,
      connection.Ask(fmt::format(
          "SELECT 'the view ' || view_name FROM duckdb_views() WHERE database_name = {0} AND NOT internal "
          "UNION ALL SELECT 'the macro ' || function_name FROM duckdb_functions() "
          "WHERE database_name = {0} AND NOT internal "
          "UNION ALL SELECT 'a generated column in ' || table_name FROM duckdb_tables() "
          "WHERE database_name = {0} AND sql ILIKE '% GENERATED ALWAYS AS%' LIMIT 1",
          duckdb::QuoteText(catalog))));
  ASSIGN_OR_RETURN(const bool any, rows->Next());
  if (!any) return {};
  return Fail(ErrorCode::kCorrupt,
              fmt::format("not a recording that gpusonde made: it contains {}, whose SQL "
                          "would run when it is read",
                          rows->Text(0)));
}

Status CheckContent(duckdb::Connection& connection, std::string_view catalog, const FileBytes& bytes) {
  TRY(CheckOnlyTables(connection, catalog));
  TRY(duckdb::ReadVersion(connection, catalog));
  if (bytes.present >= bytes.full) return {};
  ASSIGN_OR_RETURN(const bool whole, HoldsItsRows(connection, catalog, bytes.present));
  return whole ? Status{} : Fail(ErrorCode::kCorrupt, "rows lie beyond the end of the file");
}

// Of the files that exist; what is wrong with others is said when they are attached.
uint64_t BytesOf(const std::vector<std::string>& paths) {
  uint64_t bytes = 0;
  for (const std::string& path : paths) {
    std::error_code absent;
    if (const auto size = std::filesystem::file_size(path, absent); !absent) bytes += size;
  }
  return bytes;
}

}  // namespace

std::optional<Error> WhyAbsent(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(fmt::format("{}{}", path, kSpoolEnding), ignored))
    return Unfinished(path);
  if (path.starts_with("http://") || path.starts_with("https://"))
    return Error{ErrorCode::kInvalidArgument,
                 path +
                     ": a URL; files are read here, so download it. A running gpusonde is asked with "
                     "--server by diagnose, query and usage"};
  return std::nullopt;
}

int ThreadsFor(uint64_t bytes) {
  // DuckDB's threads share a table by its row groups of 122,880 rows, so a second one has nothing to do in
  // small files: there it only took a tenth of the CPU time of `record -- true`.
  constexpr uint64_t kBytesOfOneRowGroup = 1 << 20;
  return bytes < kBytesOfOneRowGroup ? 1 : duckdb::Settings().threads;
}

Status AttachRecording(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       Access access) {
  ASSIGN_OR_RETURN(const FileBytes bytes, Inspect(path));
  Status attached = Attach(connection, path, catalog, access,
                           access == Access::kWriting ? kSmallRowGroups : std::string_view());
  if (attached.has_value()) {
    attached = CheckContent(connection, catalog, bytes);
    if (attached.has_value()) return {};
    static_cast<void>(connection.Run("DETACH " + duckdb::QuoteName(catalog)));
  }
  Error error = std::move(attached).error();
  const bool is_about_content = error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kIo ||
                                error.code == ErrorCode::kInternal ||
                                error.code == ErrorCode::kInvalidArgument;
  if (bytes.present < bytes.full && is_about_content)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("{} is truncated: {} of {} bytes are there; copy it again, or recover "
                            "it from its spool",
                            path, bytes.present, bytes.full));
  return Fail(std::move(error).With(path));
}

Status AttachNew(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                 Layout layout) {
  if (path == ":memory:") {
    TRY(Attach(connection, path, catalog, Access::kWriting));
    return duckdb::CreateTables(connection, catalog);
  }
  const std::string temporary = path + ".new";
  for (const std::string& left : {temporary, temporary + ".wal"}) ::unlink(left.c_str());
  TRY(Attach(connection, temporary, catalog, Access::kWriting,
             layout == Layout::kSmall ? fmt::format("{}{}", kFewStatistics, kSmallBlocks) : ""));
  Status made = duckdb::CreateTables(connection, catalog);
  // DETACH would checkpoint too, but keeps silent when that fails, and the tables would stay in the log of
  // `temporary`.
  if (made.has_value()) made = connection.Run("CHECKPOINT " + duckdb::QuoteName(catalog));
  TRY(connection.Run("DETACH " + duckdb::QuoteName(catalog)));
  TRY(made);
  if (::rename(temporary.c_str(), path.c_str()) != 0) return Fail(ErrnoError(errno, "rename to " + path));
  TRY(SyncFolderOf(path));
  return Attach(connection, path, catalog, Access::kWriting, kSmallRowGroups);
}

Status AttachTemporary(duckdb::Connection& connection, const std::string& path, std::string_view catalog,
                       int64_t expected_bytes) {
  // A table that has any rows takes a block or more, of 262,144 bytes by default; 16,384 is the least.
  constexpr int64_t kSmallFile = int64_t{4} << 20;
  TRY(Attach(connection, path, catalog, Access::kWriting,
             fmt::format("{}{}", kFewStatistics, expected_bytes < kSmallFile ? kSmallBlocks : "")));
  return duckdb::CreateTables(connection, catalog);
}

Result<std::shared_ptr<duckdb::Instance>> OpenForReading(const std::vector<std::string>& paths,
                                                         const std::string& folder) {
  if (paths.empty()) return Fail(ErrorCode::kInvalidArgument, "no recording was named");
  ASSIGN_OR_RETURN(auto instance, duckdb::Instance::Create({.threads = ThreadsFor(BytesOf(paths))}));
  ASSIGN_OR_RETURN(duckdb::Connection connection, duckdb::Connection::Open(instance));
  // Neither the files nor the SQL of a query can be trusted: they reach these files and nothing else, from
  // before the first byte is read.
  std::string allowed;
  for (const std::string& path : paths) TRY(CheckRecordingName(path));
  for (const std::string& path : paths)
    for (const char* suffix : {"", ".wal"})
      allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", duckdb::QuoteText(path + suffix));
  TRY(connection.Run(fmt::format("SET allowed_paths = [{}]", allowed)));
  if (!folder.empty())
    TRY(connection.Run(fmt::format("SET allowed_directories = [{}]", duckdb::QuoteText(folder + "/"))));
  TRY(connection.Run("SET enable_external_access = false"));
  TRY(connection.Run("SET lock_configuration = true"));
  std::vector<std::string> catalogs;
  for (const std::string& path : paths) {
    catalogs.push_back(fmt::format("recording{}", catalogs.size()));
    TRY(AttachRecording(connection, path, catalogs.back(), Access::kReading));
  }
  TRY(duckdb::CreateViews(connection, catalogs));
  return instance;
}

}  // namespace gpusonde::store
