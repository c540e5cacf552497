// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "base/result.h"

namespace gpusonde {

// The folder for large temporary files: $TMPDIR, or else /var/tmp, which is on disk while /tmp may be memory.
std::string FolderForLargeFiles();

// A new folder that only this user may enter, removed with its contents by the object. Not thread-safe.
class TemporaryFolder {
 public:
  TemporaryFolder() = default;
  // Creates one in `where`; empty: in the system's folder for temporary files. Errors: the file system's,
  // naming the folder.
  static Result<TemporaryFolder> Create(std::string where = "");
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~TemporaryFolder();

  const std::string& path() const { return path_; }  // empty if there is none

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace gpusonde
