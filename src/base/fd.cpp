// SPDX-License-Identifier: Apache-2.0
#include "base/fd.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include "base/disk.h"
#include "base/replacing_file.h"

namespace gpusonde {
namespace {

// The process that took the flock on the file, from /proc/locks, which only lists those of our PID namespace.
// A child that it has forked may hold the lock by now, and it may be gone.
std::optional<int> LockTaker(const Fd& file) {
  struct stat status{};
  if (::fstat(file.get(), &status) != 0) return std::nullopt;
  std::ifstream locks("/proc/locks");
  // "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131 0 EOF"; Documentation/filesystems/proc.rst
  const std::string inode = ":" + std::to_string(status.st_ino);
  for (std::string line; std::getline(locks, line);) {
    std::istringstream fields(line);
    std::string number, kind, mode, access, id;
    int pid = 0;
    if (fields >> number >> kind >> mode >> access >> pid >> id && kind == "FLOCK" && id.ends_with(inode) &&
        pid > 0)
      return pid;
  }
  return std::nullopt;
}

// Whether the path leads to an open file of a process through links in /proc, as /dev/stdout does.
bool LeadsToOpenFile(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;  // as the kernel follows
  for (int links = 0; links < kMaxLinks; ++links) {
    const std::filesystem::path folder = FolderOf(path);
    struct statfs system{};
    if (::statfs(folder.c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC) return true;
    std::error_code no_link;
    const std::filesystem::path target = std::filesystem::read_symlink(path, no_link);
    if (no_link) return false;
    path = folder / target;
  }
  return false;
}

bool HasEnded(int pid) {
  const Result<std::string> stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
  if (!stat.has_value()) return stat.error().code == ErrorCode::kNotFound;
  // "4711 (name) Z ..."; proc_pid_stat(5). The name may hold parentheses.
  const size_t state = stat->rfind(')') + 2;
  return state < stat->size() && ((*stat)[state] == 'Z' || (*stat)[state] == 'X');
}

// A process that is killed between fork and exec of a child leaves its locks to that child until the child is
// scheduled once more, so a lock of a process that has ended is waited for.
bool TakeLock(const Fd& file) {
  constexpr int kPollMs = 10;
  constexpr int kPolls = 500;  // 5 s; a loaded machine takes tenths of a second
  bool unseen = false;         // the taker, at the last poll
  for (int poll = 0; ::flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++poll) {
    if (errno != EWOULDBLOCK || poll == kPolls) return false;
    const std::optional<int> taker = LockTaker(file);
    const bool was_unseen = std::exchange(unseen, !taker.has_value());
    // Without a taker the lock was just released, or, the second time, its taker isn't visible here.
    if (taker.has_value() ? !HasEnded(*taker) : was_unseen) {
      errno = EWOULDBLOCK;
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPollMs));
  }
  return true;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Fd::Close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

Result<Fd> Open(const std::string& path, int flags, unsigned mode) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd < 0) return Fail(ErrnoError(errno, "open " + path));
  return Fd(fd);
}

Result<Fd> Duplicate(const Fd& fd) {
  Fd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return Fail(ErrnoError(errno, "duplicate a file descriptor"));
  return copy;
}

Result<std::string> ReadFile(const std::string& path, size_t limit) {
  ASSIGN_OR_RETURN(Fd fd, Open(path, O_RDONLY));
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, "read " + path));
    if (count == 0) return content;
    if (content.size() + static_cast<size_t>(count) > limit)
      return Fail(ErrorCode::kUnsupported,
                  "read " + path + ": larger than " + std::to_string(limit) + " bytes");
    content.append(buffer, static_cast<size_t>(count));
  }
}

Result<size_t> ReadAt(int fd, uint64_t offset, std::span<std::byte> into, std::string_view name) {
  size_t size = 0;
  while (size < into.size()) {
    const ssize_t count = ::pread(fd, &into[size], into.size() - size, static_cast<off_t>(offset + size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, fmt::format("read {}", name)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  return size;
}

Status WriteAll(int fd, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(ErrnoError(errno, "write"));
    data = data.subspan(static_cast<size_t>(count));
  }
  return {};
}

Result<Fd> LockFolder(const std::string& path, std::string_view advice) {
  if (::mkdir(path.c_str(), 0700) == 0) {
    TRY(SyncFolderOf(path));
  } else if (errno != EEXIST) {
    return Fail(ErrnoError(errno, "create folder " + path));
  }
  ASSIGN_OR_RETURN(Fd folder, Open(path, O_RDONLY | O_DIRECTORY));
  if (TakeLock(folder)) return folder;
  if (errno != EWOULDBLOCK) return Fail(ErrnoError(errno, "lock folder " + path));
  const std::optional<int> taker = LockTaker(folder);
  return Fail(ErrorCode::kUnavailable,
              fmt::format("{} is in use by another gpusonde{}; {}", path,
                          taker.has_value() ? fmt::format(" (process {})", *taker) : "", advice));
}

Status SyncFolderOf(const std::string& path) {
  ASSIGN_OR_RETURN(Fd folder, Open(FolderOf(path), O_RDONLY | O_DIRECTORY));
  if (::fsync(folder.get()) != 0) return Fail(ErrnoError(errno, "fsync folder of " + path));
  return {};
}

Status CheckReplaceable(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  if (!S_ISREG(status.st_mode))
    return Fail(ErrorCode::kInvalidArgument, path + " exists and is not a regular file; choose another path");
  // Another file would take the place of the link, for all processes.
  if (LeadsToOpenFile(path))
    return Fail(ErrorCode::kInvalidArgument, path + " leads to an open file; choose another path");
  return {};
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  ASSIGN_OR_RETURN(ReplacingFile file, ReplacingFile::Create(path));
  Status written = WriteAll(file.fd(), std::as_bytes(std::span(content)));
  if (!written.has_value()) return Fail(std::move(written).error().With(path));
  return file.Commit();
}

}  // namespace gpusonde
