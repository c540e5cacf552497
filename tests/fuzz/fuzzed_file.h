// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/fd.h"

// A file on disk, removed at exit: libsqlite3 resolves /proc/self/fd/N to a name, which must exist.
class FuzzedFile {
 public:
  FuzzedFile() : fd_(::mkostemp(path_.data(), O_CLOEXEC)) {
    if (!fd_.valid()) std::abort();
  }
  FuzzedFile(const FuzzedFile&) = delete;
  FuzzedFile& operator=(const FuzzedFile&) = delete;
  ~FuzzedFile() { ::unlink(path_.c_str()); }

  void Fill(std::span<const uint8_t> bytes) {
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) != 0 ||
        !gpusonde::WriteAll(fd_.get(), std::as_bytes(bytes)).has_value())
      std::abort();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "gpusonde-fuzz-XXXXXX").string();
  gpusonde::Fd fd_;
};
