// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde {

// A file that is written to take the place of `path` once it is complete: a file without a name in the same
// folder, which Commit gives the name. Without Commit nothing remains, even if the process is killed; on file
// systems without such files, `path`.tmp may. What isn't a regular file, such as a pipe or device, is written
// to directly.
class ReplacingFile {
 public:
  // Errors, naming `path`: kInvalidArgument (a folder), kNotFound (no folder), kPermissionDenied, kIo.
  static Result<ReplacingFile> Create(const std::string& path);
  ReplacingFile(ReplacingFile&&) = default;
  ReplacingFile& operator=(ReplacingFile&&) = delete;
  ~ReplacingFile();

  int fd() const { return fd_.get(); }

  // Makes the file durable under the path. Errors, naming it: those of the file system.
  Status Commit();

 private:
  enum class Kind { kUnnamed, kNamed, kDirect };
  ReplacingFile(std::string path, Fd fd, Kind kind)
      : path_(std::move(path)), fd_(std::move(fd)), kind_(kind) {}
  std::string Temporary() const { return path_ + ".tmp"; }

  std::string path_;
  Fd fd_;  // closed: nothing to remove any more
  Kind kind_;
};

}  // namespace gpusonde
