// SPDX-License-Identifier: Apache-2.0
#include "base/file_stamp.h"

#include <sys/stat.h>

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
          .changed_ns = status.st_ctim.tv_sec * kNanosPerSecond + status.st_ctim.tv_nsec};
}

bool MayChangeUnseen(const FileStamp& stamp, int64_t epoch_now_ns) {
  return epoch_now_ns - stamp.changed_ns < kSettledNs;
}

}  // namespace gpusonde
