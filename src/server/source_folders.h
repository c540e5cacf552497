// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::server {

struct SourceText {
  std::string text;         // UTF-8; bytes that are none are U+FFFD
  int64_t modified_ns = 0;  // when the file last changed, since the epoch
};

// Folders from which source files are shown, as the person who started the server chose them. Which files are
// asked for comes from a recording, that is, from anyone: nothing outside of the folders is read, whatever
// links and `..` say (openat2's RESOLVE_BENEATH, Linux 5.6), and nothing hidden (a name that begins with a
// dot) inside of them. Immutable, thread-safe.
class SourceFolders {
 public:
  static constexpr int64_t kMaxBytes = int64_t{4} << 20;

  // No folder: nothing is readable.
  SourceFolders() = default;

  // Errors: kNotFound, kPermissionDenied for what is no folder or can't be opened.
  static Result<SourceFolders> Open(const std::vector<std::string>& paths);

  // A file by the path that debug information or the interpreter tells: absolute, or relative to one of the
  // folders. Errors: kNotFound when it isn't in any folder, kUnsupported for what is hidden, no regular file
  // or longer than kMaxBytes, kPermissionDenied, kIo. The messages are for a person.
  Result<SourceText> Read(const std::string& path) const;

 private:
  struct Folder {
    std::string named;      // as it was given, absolute
    std::string canonical;  // without links
    Fd fd;
  };
  std::vector<Folder> folders_;
};

}  // namespace gpusonde::server
