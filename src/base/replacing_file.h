// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde {

// A file that is written to take the place of `path` once it is complete: a file without a name in the same
// folder, which Commit gives the name. Without Commit nothing remains, even if the process is killed; on file
// systems without such files, a file `path`.tmp, or with a number if that is taken, may. What isn't a regular
// file, such as a pipe or device, is written to directly.
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
  ReplacingFile(std::string path, Fd fd, Kind kind, std::string temporary = "")
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)), kind_(kind) {}

  std::string path_;
  std::string temporary_;  // the name until Commit, if it has one
  Fd fd_;                  // closed: nothing to remove any more
  Kind kind_;
};

}  // namespace gpusonde
