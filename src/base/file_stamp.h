// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace gpusonde {

// Which version of a file's content a path leads to, through links, by what stat(2) says: for files that are
// read again when they change. A file that isn't there has a stamp too.
struct FileStamp {
  uint64_t device = 0;
  uint64_t inode = 0;
  int64_t size = -1;
  int64_t changed_ns = 0;  // of its inode, since the epoch

  bool operator==(const FileStamp&) const = default;
};

FileStamp StampOf(const std::string& path);

// Whether the file may still change without another stamp: the kernel's clock for files ticks every 10 ms at
// most, so a write right after the one that was stamped may have the same time.
bool MayChangeUnseen(const FileStamp& stamp, int64_t epoch_now_ns);

// Files that are read again when they change. Not thread-safe.
class WatchedFiles {
 public:
  enum class State : uint8_t {
    kSame,
    kUnsettled,  // the same by their stamps, but may have changed unseen: read them, and say nothing of it
    kChanged,
  };

  explicit WatchedFiles(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  // Call right before the files are read.
  void MarkRead();
  // Compares the files with those that were read last.
  State Check() const;

 private:
  std::vector<FileStamp> Stamps() const;

  std::vector<std::string> paths_;
  std::vector<FileStamp> stamps_;
  bool settled_ = false;
};

}  // namespace gpusonde
