// SPDX-License-Identifier: Apache-2.0
#include "importers/sqlite/settled_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/regular_file.h"
#include "importers/sqlite/connection.h"

namespace gpusonde::importers::sqlite {
namespace {

constexpr std::string_view kLogSuffix = "-wal", kJournalSuffix = "-journal";

struct Version {
  int64_t bytes = 0, changed_s = 0, changed_ns = 0;
  bool operator==(const Version&) const = default;
};

// Of a regular file; zero if there is none.
Version VersionOf(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  return {info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec};
}

// By read and write alone: std::filesystem::copy_file needs calls that the sandbox of readers doesn't have.
Status Copy(const std::string& from, const std::string& to) {
  ASSIGN_OR_RETURN(const Fd source, OpenRegular(from));
  ASSIGN_OR_RETURN(const Fd target, gpusonde::Open(to, O_WRONLY | O_CREAT | O_EXCL, 0600));
  constexpr size_t kBytesAtOnce = size_t{1} << 20;
  std::vector<std::byte> buffer(kBytesAtOnce);
  while (true) {
    const ssize_t size = ::read(source.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return Fail(ErrnoError(errno, "read"));
    if (size == 0) return {};
    TRY(WriteAll(target.get(), std::span(buffer).first(static_cast<size_t>(size))));
  }
}

}  // namespace

Result<std::optional<SettledCopy>> SettledCopy::Make(const std::string& path, uint64_t max_bytes) {
  const std::array<std::string_view, 3> suffixes = {"", kLogSuffix, kJournalSuffix};
  std::array<Version, 3> versions;
  uint64_t bytes = 0;
  for (size_t i = 0; i < suffixes.size(); ++i) {
    versions[i] = VersionOf(path + std::string(suffixes[i]));
    bytes += static_cast<uint64_t>(versions[i].bytes);
  }
  if (versions[1].bytes == 0 && versions[2].bytes == 0) return std::nullopt;
  // Applying a log may double the database.
  const std::string where = FolderForLargeFiles();
  if (2 * bytes > max_bytes)
    return Fail(ErrorCode::kOutOfSpace,
                fmt::format("{}: its last changes are in a log beside it, and reading it needs a copy of up "
                            "to {} MB in {}, beyond --temp-limit",
                            path, 2 * bytes / 1'000'000, where));
  Result<TemporaryFolder> folder = TemporaryFolder::Create(where);
  if (!folder.has_value()) {
    folder.error().message += " ($TMPDIR chooses another folder)";
    return std::unexpected(folder.error());
  }
  SettledCopy copy(*std::move(folder));
  for (size_t i = 0; i < suffixes.size(); ++i) {
    const std::string from = path + std::string(suffixes[i]);
    if (versions[i].bytes == 0) continue;
    if (Status copied = Copy(from, copy.path() + std::string(suffixes[i])); !copied.has_value())
      return Fail(std::move(copied).error().With(
          fmt::format("copy {} to {} ($TMPDIR chooses another folder)", from, where)));
    if (VersionOf(from) != versions[i])
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("{}: still being written; try again when its profiler has ended", from));
  }
  TRY(Connection::Settle(copy.path(), path));
  return copy;
}

}  // namespace gpusonde::importers::sqlite
