// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace gpusonde {

// An owned file descriptor; closed once, on destruction.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void Close();

 private:
  int fd_ = -1;
};

// open(2) with O_CLOEXEC. `flags` as for open(2); `mode` is used with O_CREAT.
Result<Fd> Open(const std::string& path, int flags, unsigned mode = 0644);

// Duplicates a descriptor, with close-on-exec.
Result<Fd> Duplicate(const Fd& fd);

// Reads a whole file, regardless of its reported size (0 in /proc). A file of more than `limit` bytes is
// kUnsupported.
Result<std::string> ReadFile(const std::string& path, size_t limit = size_t{64} << 20);

// Fills `into` from this offset, or up to the end of the file; resumes after short reads and signals. Returns
// the number of bytes read; `name` is the file's in errors.
Result<size_t> ReadAt(int fd, uint64_t offset, std::span<std::byte> into, std::string_view name);

// Writes all bytes, resuming after short writes and signals.
Status WriteAll(int fd, std::span<const std::byte> data);

// Checks that `path` may be replaced by another file: it doesn't exist or is a regular file. A device or
// pipe, such as /dev/null, must not be replaced. Errors: kInvalidArgument.
Status CheckReplaceable(const std::string& path);

// Replaces `path` by `content` atomically, through a ReplacingFile (base/replacing_file.h): either the whole
// content is there, durable, or the file that was there before.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// Creates the folder (mode 0700) if it doesn't exist (its parent must exist), and holds an exclusive flock on
// it until the descriptor is closed. Waits up to 5 s for the lock of a process that has ended, which a child
// that it was starting may still hold. Errors: kUnavailable, with the advice, when another process holds it;
// kNotFound, kPermissionDenied, kIo.
Result<Fd> LockFolder(const std::string& path,
                      std::string_view advice = "stop that one or choose another folder");

// fsync of the folder that holds `path`, so that a rename or a new name survives a power cut.
Status SyncFolderOf(const std::string& path);

}  // namespace gpusonde
