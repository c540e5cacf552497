// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file_time.h"
#include "base/time.h"

namespace gpusonde {
namespace {

// A hundred ticks of that clock, and room for the clock of a file server.
constexpr int64_t kSettledNs = kNanosPerSecond;

}  // namespace

FileStamp StampOf(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .size = status.st_size,
          .changed_ns = FileTimeNs(status.st_ctim)};
}

bool MayChangeUnseen(const FileStamp& stamp, int64_t epoch_now_ns) {
  return stamp.changed_ns > epoch_now_ns - kSettledNs;
}

std::vector<FileStamp> WatchedFiles::Stamps() const {
  std::vector<FileStamp> stamps;
  for (const std::string& path : paths_) stamps.push_back(StampOf(path));
  return stamps;
}

void WatchedFiles::MarkRead() {
  stamps_ = Stamps();
  settled_ = std::ranges::none_of(
      stamps_, [now_ns = EpochNow()](const FileStamp& stamp) { return MayChangeUnseen(stamp, now_ns); });
}

WatchedFiles::State WatchedFiles::Check() const {
  if (Stamps() != stamps_) return State::kChanged;
  return settled_ ? State::kSame : State::kUnsettled;
}

}  // namespace gpusonde
