// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::analyze {

// An unnamed file, deleted with the object, in $TMPDIR or else /var/tmp (on disk, while /tmp may be memory).
// Created by the first Append, so an unused one costs nothing. One writer; concurrent reads.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();
  // Reads an existing file.
  explicit TemporaryFile(Fd fd) : fd_(std::move(fd)) {}

  // From now on, all temporary files of the process may have `bytes` together; `estimate` is what they may
  // need, for the error.
  static void LimitSpace(uint64_t bytes, uint64_t estimate);

  // Appends the bytes; returns their offset. Errors: kPermissionDenied, kOutOfSpace (also beyond the limit),
  // kIo, naming the folder and $TMPDIR.
  Result<uint64_t> Append(std::span<const std::byte> bytes);
  // Fills `into` from a written offset.
  Status Read(uint64_t offset, std::span<std::byte> into) const;

  uint64_t size() const { return size_; }
  int fd() const { return fd_.get(); }

 private:
  Status Create();

  Fd fd_;
  uint64_t size_ = 0;
};

}  // namespace gpusonde::analyze
