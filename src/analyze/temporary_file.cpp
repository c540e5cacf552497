// SPDX-License-Identifier: Apache-2.0
#include "analyze/temporary_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <limits>
#include <string>

#include "base/temporary_folder.h"

namespace gpusonde::analyze {
namespace {

Error Explain(int error_number, std::string_view what) {
  return ErrnoError(error_number,
                    std::string(what) + " in " + FolderForLargeFiles() + " ($TMPDIR chooses another folder)");
}

// Of all temporary files of the process.
struct Space {
  std::atomic<uint64_t> used = 0;
  std::atomic<uint64_t> limit = std::numeric_limits<uint64_t>::max();
  std::atomic<uint64_t> estimate = 0;
};
Space& TheSpace() {
  static Space space;
  return space;
}

std::string Megabytes(uint64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace

TemporaryFile::~TemporaryFile() { TheSpace().used -= size_; }

void TemporaryFile::LimitSpace(uint64_t bytes, uint64_t estimate) {
  TheSpace().limit = bytes;
  TheSpace().estimate = estimate;
}

Status TemporaryFile::Create() {
  const std::string folder = FolderForLargeFiles();
  fd_ = Fd(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (fd_.valid()) return {};
  // Some file systems don't support O_TMPFILE.
  std::string path = folder + "/gpusonde-XXXXXX";
  fd_ = Fd(::mkostemp(path.data(), O_CLOEXEC));
  if (!fd_.valid()) return Fail(Explain(errno, "temporary file"));
  ::unlink(path.c_str());
  return {};
}

Result<uint64_t> TemporaryFile::Append(std::span<const std::byte> bytes) {
  if (!fd_.valid()) TRY(Create());
  Space& space = TheSpace();
  if (space.used + bytes.size() > space.limit)
    return Fail(
        ErrorCode::kOutOfSpace,
        fmt::format("temporary files in {} would exceed --temp-limit, {}; these traces may need up to "
                    "{} ($TMPDIR chooses another folder)",
                    FolderForLargeFiles(), Megabytes(space.limit), Megabytes(space.estimate)));
  const uint64_t begin = size_;
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(size_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(Explain(errno, "write a temporary file"));
    size_ += static_cast<uint64_t>(count);
    space.used += static_cast<uint64_t>(count);
    bytes = bytes.subspan(static_cast<size_t>(count));
  }
  return begin;
}

Status TemporaryFile::Read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t count = ::pread(fd_.get(), into.data(), into.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Fail(Explain(errno, "read a temporary file"));
    if (count == 0) return Fail(ErrorCode::kIo, "a temporary file of gpusonde was truncated");
    offset += static_cast<uint64_t>(count);
    into = into.subspan(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace gpusonde::analyze
