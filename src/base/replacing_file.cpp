// SPDX-License-Identifier: Apache-2.0
#include "base/replacing_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <system_error>
#include <utility>

#include "base/disk.h"

namespace gpusonde {
namespace {

constexpr mode_t kMode = 0644;  // less the umask

// The user knows the path and not the file that takes its place.
std::unexpected<Error> Failed(const std::string& path, int number) {
  Error error = ErrnoError(number, "write " + path);
  if (error.code == ErrorCode::kPermissionDenied) error.message += "; choose another output";
  return Fail(std::move(error));
}

// Tries names beside `path` until `take` succeeds or fails for another reason than that the name is taken,
// perhaps by a file of the user's. Returns the last one.
std::string TakeFreeName(const std::string& path, const std::function<bool(const char* name)>& take) {
  std::string name = path + ".tmp";
  for (int number = 2; !take(name.c_str()) && errno == EEXIST; ++number)
    name = fmt::format("{}.tmp{}", path, number);
  return name;
}

}  // namespace

Result<ReplacingFile> ReplacingFile::Create(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Fail(ErrorCode::kInvalidArgument, path + " is a folder; give the name of a file");
  if (!CheckReplaceable(path).has_value()) {
    // Of /dev/stdout that `>>` appends to, what is there stays.
    ASSIGN_OR_RETURN(Fd fd, Open(path, O_WRONLY | O_APPEND));
    return ReplacingFile(path, std::move(fd), Kind::kDirect);
  }
  TRY(CheckFolderOf(path));
  Fd unnamed(::open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
  if (unnamed.valid()) return ReplacingFile(path, std::move(unnamed), Kind::kUnnamed);
  if (errno != EOPNOTSUPP && errno != EISDIR) return Failed(path, errno);
  Fd named;
  const std::string temporary = TakeFreeName(path, [&](const char* name) {
    named = Fd(::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
    return named.valid();
  });
  if (!named.valid()) return Failed(path, errno);
  return ReplacingFile(path, std::move(named), Kind::kNamed, temporary);
}

ReplacingFile::~ReplacingFile() {
  if (fd_.valid() && kind_ == Kind::kNamed) ::unlink(temporary_.c_str());
}

Status ReplacingFile::Commit() {
  if (kind_ == Kind::kDirect) return {};
  if (::fsync(fd_.get()) != 0) return Failed(path_, errno);
  if (kind_ == Kind::kUnnamed) {
    // linkat(2) doesn't replace a file, so it gets a name beside the path first.
    const std::string unnamed = fmt::format("/proc/self/fd/{}", fd_.get());
    bool linked = false;
    temporary_ = TakeFreeName(path_, [&](const char* name) {
      linked = ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
      return linked;
    });
    if (!linked) return Failed(path_, errno);
    kind_ = Kind::kNamed;
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return Failed(path_, errno);
  fd_.Close();
  return SyncFolderOf(path_);
}

}  // namespace gpusonde
