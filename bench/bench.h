// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

// Shared by the benchmark programs.
namespace gpusonde {

// A folder that is removed with its object.
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

// Returns the value, or ends the program with the error.
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
