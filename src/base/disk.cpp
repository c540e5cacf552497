// SPDX-License-Identifier: Apache-2.0
#include "base/disk.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>

namespace gpusonde {

Status CheckDiskRoom(const std::string& folder, int64_t min_free_bytes) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return Fail(ErrnoError(errno, "free space of " + folder));
  if ((disk.f_flag & ST_RDONLY) != 0)
    return Fail(ErrorCode::kPermissionDenied, fmt::format("the file system of {} is read-only", folder));
  const auto free_bytes = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  if (free_bytes >= min_free_bytes) return {};
  return Fail(ErrorCode::kOutOfSpace,
              fmt::format("the disk of {} is nearly full: {} MB are free, and {} MB are kept in reserve",
                          folder, free_bytes / 1'000'000, min_free_bytes / 1'000'000));
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

Status CheckFolderOf(const std::string& path) {
  const std::string folder = FolderOf(path);
  struct stat status{};
  if (::stat(folder.c_str(), &status) != 0) {
    if (errno == ENOENT)
      return Fail(ErrorCode::kNotFound,
                  fmt::format("{}: there is no folder {}; make it, or choose another output", path, folder));
    if (errno != ENOTDIR) return Fail(ErrnoError(errno, "find the folder of " + path));
  } else if (S_ISDIR(status.st_mode)) {
    // A deleted folder has no name any more, but processes may still work in it.
    if (status.st_nlink > 0) return {};
    return Fail(ErrorCode::kNotFound,
                fmt::format("{}: the folder {} was deleted; change to another (cd), or give a full path",
                            path, folder == "." ? "in which this command runs" : folder));
  }
  return Fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: {} is not a folder; choose another output", path, folder));
}

}  // namespace gpusonde
