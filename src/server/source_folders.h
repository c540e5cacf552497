// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::server {

struct SourceText {
  std::string text;         // UTF-8; invalid bytes are U+FFFD
  int64_t modified_ns = 0;  // when the file last changed, since the epoch
};

// The folders from which source files are shown, chosen by the user who started the server. The requested
// paths come from a recording and are untrusted: nothing outside the folders is read, whatever links and `..`
// a path has (openat2's RESOLVE_BENEATH, Linux 5.6), and nothing hidden (a name that begins with a dot)
// inside them. Immutable, thread-safe.
class SourceFolders {
 public:
  static constexpr int64_t kMaxBytes = int64_t{4} << 20;

  // Without folders, nothing is readable.
  SourceFolders() = default;

  // Errors: kNotFound, kPermissionDenied for a path that isn't a folder or can't be opened.
  static Result<SourceFolders> Open(const std::vector<std::string>& paths);

  // Reads a file by its path in debug information or the interpreter: absolute, or relative to one of the
  // folders. Errors: kNotFound if it isn't in any folder, kUnsupported if it is hidden, not a regular file or
  // longer than kMaxBytes, kPermissionDenied, kIo. The messages are meant for users.
  Result<SourceText> Read(const std::string& path) const;

 private:
  struct Folder {
    std::string named;      // as given, made absolute
    std::string canonical;  // with links resolved
    Fd fd;
  };
  std::vector<Folder> folders_;
};

}  // namespace gpusonde::server
