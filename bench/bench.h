// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

// What the benchmark programs share.
namespace gpusonde {

// A folder that goes with its object.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / "gpusonde-bench-XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) std::abort();
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// The value, or the end of the program with the reason: what fails isn't measured.
template <class T>
T Must(Result<T> result) {
  if (result.has_value()) return std::move(result).value();
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, result.error().message);
  std::exit(1);
}
inline void Must(const Status& status) {
  if (status.has_value()) return;
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, status.error().message);
  std::exit(1);
}

}  // namespace gpusonde
