// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::analyze {

// A file without a name, gone with the object, in $TMPDIR or else /var/tmp (which is on disk, where /tmp may
// be memory). It is made by the first Append, so one that isn't needed costs nothing. One writer; reads may
// run beside each other.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  // Reads a file that is there already.
  explicit TemporaryFile(Fd fd) : fd_(std::move(fd)) {}

  // Adds the bytes at the end; returns where they begin. Errors: kPermissionDenied, kOutOfSpace, kIo, naming
  // the folder and $TMPDIR.
  Result<uint64_t> Append(std::span<const std::byte> bytes);
  // All of `into`, from a place that was written.
  Status Read(uint64_t offset, std::span<std::byte> into) const;

  uint64_t size() const { return size_; }

 private:
  Status Create();

  Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace gpusonde::analyze
