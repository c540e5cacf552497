// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gpusonde {

std::string FolderForLargeFiles() {
  const char* const chosen = std::getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/var/tmp";
}

Result<TemporaryFolder> TemporaryFolder::Create(std::string where) {
  std::error_code failed;
  if (where.empty()) where = std::filesystem::temp_directory_path(failed).string();
  if (failed) return Fail(ErrnoError(failed.value(), "find a folder for temporary files"));
  std::string path = where + "/gpusonde-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr)
    return Fail(ErrnoError(errno, "make a temporary folder in " + where));
  return TemporaryFolder(path);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gpusonde
