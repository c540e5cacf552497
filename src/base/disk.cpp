// SPDX-License-Identifier: Apache-2.0
#include "base/disk.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>

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
                          folder, free_bytes >> 20, min_free_bytes >> 20));
}

}  // namespace gpusonde
