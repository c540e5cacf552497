// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

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
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::pread(file.get(), &text[size], text.size() - size, static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, "read an open file"));
    if (count == 0) break;  // it was truncated meanwhile
    size += static_cast<size_t>(count);
  }
  text.resize(size);
  return text;
}

}  // namespace gpusonde
