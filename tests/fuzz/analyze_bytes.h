// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "analyze/analyzer.h"
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

// Does everything that `gpusonde analyze` does with a file, with and without --partial. Its sums must be
// consistent.
inline void AnalyzeBytes(const uint8_t* data, size_t size) {
  static FuzzedFile file;
  file.Fill({data, size});
  for (const bool partial : {false, true}) {
    const auto report =
        gpusonde::analyze::Analyze({file.path()}, {.threads = 1, .partial = partial, .rank_from = {}});
    if (!report.has_value()) {
      if (report.error().message.empty()) std::abort();  // an error needs a message
      continue;
    }
    for (const auto& rank : report->ranks)
      if (rank.busy_ns < 0 || rank.idle_ns < 0 || rank.busy_ns + rank.idle_ns != rank.span_ns) std::abort();
    if (ToJson(*report).empty() || ToText(*report).empty()) std::abort();
  }
}
