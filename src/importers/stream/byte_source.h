// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace gpusonde::importers {

// The bytes of a file from its beginning, decompressed if its first bytes show gzip (any number of members)
// or zstd (any number of frames). Not thread-safe.
class ByteSource {
 public:
  // Errors: kNotFound, kPermissionDenied, kIo, each naming the file.
  static Result<std::unique_ptr<ByteSource>> Open(const std::string& path);
  virtual ~ByteSource() = default;

  // Fills `into`; returns the number of bytes read, fewer only at the end of the file. Errors: kCorrupt with
  // the offset at which decompression fails; kIo.
  virtual Result<size_t> Read(std::span<char> into) = 0;
  // Whether the file is compressed.
  virtual bool compressed() const { return true; }

  // Whether the compressed data ends in the middle. Known once Read has returned less than asked for.
  bool truncated() const { return truncated_; }
  // Bytes of the file that were read.
  uint64_t file_offset() const { return file_offset_; }
  const std::string& path() const { return path_; }

 protected:
  ByteSource(Fd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Result<size_t> ReadFile(std::span<char> into);

  bool truncated_ = false;

 private:
  Fd fd_;
  std::string path_;
  uint64_t file_offset_ = 0;
};

}  // namespace gpusonde::importers
