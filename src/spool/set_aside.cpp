// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/fd.h"
#include "spool/segment.h"
#include "spool/spool.h"

namespace gpusonde::spool {

Result<std::optional<Error>> SetAsideIfDamaged(const std::string& folder) {
  std::error_code unknown;
  if (!std::filesystem::exists(folder, unknown)) return std::nullopt;
  ASSIGN_OR_RETURN(const Fd lock, LockFolder(folder));
  ASSIGN_OR_RETURN(const std::vector<SegmentName> segments, ListSegments(folder));
  if (segments.empty()) return std::nullopt;
  const auto read = ReadEncoded(folder, 0, [](const EncodedFrame&) -> Result<bool> { return true; });
  if (read.has_value() || read.error().code != ErrorCode::kCorrupt) return std::nullopt;
  const std::string aside = DamagedFolderOf(folder);
  std::error_code failed;
  std::filesystem::remove_all(aside, failed);
  if (failed) return Fail(ErrnoError(failed.value(), "delete " + aside));
  if (std::rename(folder.c_str(), aside.c_str()) != 0)
    return Fail(ErrnoError(errno, "rename " + folder + " to " + aside));
  TRY(SyncFolderOf(folder));
  return read.error();
}

}  // namespace gpusonde::spool
