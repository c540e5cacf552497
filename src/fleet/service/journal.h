// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/id128.h"
#include "base/result.h"

namespace gpusonde::fleet {

// What must not be lost, as records in a folder: a segment of a spool (spool/segment.h). A record that was
// being written when the machine stopped is cut off. Not thread-safe.
class Journal {
 public:
  using Visit = std::function<Status(std::span<const uint8_t> record)>;

  // Creates the folder if it doesn't exist, and visits its records in their order. Errors: kCorrupt for
  // damage before the end; those of the file system and of `visit`.
  static Result<Journal> Open(const std::string& folder, const Visit& visit);

  // The record, which begins with `type`, is durable on return. After an error it may or may not be there
  // after a restart, and nothing more can be appended.
  Status Append(char type, std::span<const uint8_t> record);

 private:
  Journal(std::string folder, Fd fd, Id128 id, int64_t last)
      : folder_(std::move(folder)), fd_(std::move(fd)), id_(id), last_(last) {}

  std::string folder_;
  Fd fd_;
  Id128 id_;
  int64_t last_ = 0;  // the number of the newest record
};

}  // namespace gpusonde::fleet
