// SPDX-License-Identifier: Apache-2.0
#include "server/source_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file_time.h"
#include "base/utf8.h"

namespace gpusonde::server {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) {
  for (const fs::path& part : path) {
    const std::string name = part.string();
    if (name.starts_with('.') && name != "." && name != "..") return true;
  }
  return false;
}

// The part of an absolute path below `folder`, if it is below it.
std::optional<std::string> Beneath(std::string_view folder, std::string_view path) {
  if (folder == "/") folder = "";
  if (!path.starts_with(folder) || path.size() <= folder.size() + 1 || path[folder.size()] != '/')
    return std::nullopt;
  return std::string(path.substr(folder.size() + 1));
}

// Like openat(2), but never leaves the folder. glibc 2.36 has no wrapper.
int OpenBeneath(const Fd& folder, const std::string& path) {
  open_how how{};
  // Opening a pipe would block until it has a writer.
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  return static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how));
}

Result<SourceText> ReadOpened(const Fd& file, const std::string& path) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return Fail(ErrnoError(errno, "read " + path));
  if (!S_ISREG(status.st_mode)) return Fail(ErrorCode::kUnsupported, path + " is not a regular file");
  SourceText source;
  source.modified_ns = FileTimeNs(status.st_mtim);
  std::string bytes(static_cast<size_t>(SourceFolders::kMaxBytes) + 1, '\0');
  size_t length = 0;
  while (length < bytes.size()) {
    const ssize_t count = ::read(file.get(), bytes.data() + length, bytes.size() - length);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, "read " + path));
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  if (length == bytes.size())
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{} is longer than {} MiB", path, SourceFolders::kMaxBytes >> 20));
  bytes.resize(length);
  source.text = ToUtf8(bytes);
  return source;
}

}  // namespace

Result<SourceFolders> SourceFolders::Open(const std::vector<std::string>& paths) {
  SourceFolders folders;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::path named = fs::absolute(path, error).lexically_normal();
    const fs::path canonical = error ? fs::path() : fs::canonical(path, error);
    if (error) return Fail(ErrnoError(error.value(), "open the source folder " + path));
    ASSIGN_OR_RETURN(Fd fd, gpusonde::Open(path, O_PATH | O_DIRECTORY));
    std::string text = named.string();
    if (text.size() > 1 && text.ends_with('/')) text.pop_back();
    folders.folders_.push_back({std::move(text), canonical.string(), std::move(fd)});
  }
  return folders;
}

Result<SourceText> SourceFolders::Read(const std::string& path) const {
  for (const Folder& folder : folders_) {
    std::optional<std::string> rest = path;
    if (path.starts_with('/')) {
      rest = Beneath(folder.named, path);
      if (!rest.has_value()) rest = Beneath(folder.canonical, path);
    }
    if (!rest.has_value() || rest->empty()) continue;
    if (IsHidden(*rest))
      return Fail(ErrorCode::kUnsupported, path + " is hidden (a name in it begins with a dot)");
    const Fd file(OpenBeneath(folder.fd, *rest));
    if (file.valid()) return ReadOpened(file, path);
    // EXDEV: a symbolic link or `..` leaves the folder.
    if (errno != ENOENT && errno != ENOTDIR && errno != EXDEV) return Fail(ErrnoError(errno, "read " + path));
  }
  return Fail(ErrorCode::kNotFound,
              folders_.empty() ? path + " is not shown: no source folder was given (--sources)"
                               : path + " is not in any source folder (give its folder with --sources)");
}

}  // namespace gpusonde::server
