// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <span>

namespace gpusonde {

Result<Fd> OpenRegular(const std::string& path) {
  ASSIGN_OR_RETURN(Fd file, Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "stat " + path));
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kUnsupported, path + " is not a regular file");
  return file;
}

Result<std::string> ReadRegular(const Fd& file, size_t limit) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "stat an open file"));
  std::string text(std::min(limit, static_cast<size_t>(std::max<off_t>(status.st_size, 0))), '\0');
  ASSIGN_OR_RETURN(const size_t size,
                   ReadAt(file.get(), 0, std::as_writable_bytes(std::span(text)), "an open file"));
  text.resize(size);  // fewer if it was truncated meanwhile
  return text;
}

}  // namespace gpusonde
