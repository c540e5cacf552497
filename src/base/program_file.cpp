// SPDX-License-Identifier: Apache-2.0
#include "base/program_file.h"

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/fd.h"
#include "base/text.h"

namespace gpusonde {
namespace {

// Removes a hexadecimal number and the character after it from the front of `line`.
uintptr_t TakeAddress(std::string_view& line) {
  uintptr_t address = 0;
  const char* end = std::from_chars(line.data(), line.data() + line.size(), address, 16).ptr;
  line.remove_prefix(std::min(line.size(), static_cast<size_t>(end - line.data()) + 1));
  return address;
}

}  // namespace

Result<std::string> ProgramFile() {
  ASSIGN_OR_RETURN(const std::string maps, ReadFile("/proc/self/maps"));
  const auto here = reinterpret_cast<uintptr_t>(&ProgramFile);
  for (std::string_view rest = maps; !rest.empty();) {
    std::string_view line = TakeLine(rest);
    const uintptr_t start = TakeAddress(line);
    const uintptr_t end = TakeAddress(line);
    const size_t path = line.find('/');
    if (here >= start && here < end && path != std::string_view::npos) return std::string(line.substr(path));
  }
  return Fail(ErrorCode::kNotFound, "/proc/self/maps has no file for this program's own code");
}

Result<std::string> InstallFolder() {
  ASSIGN_OR_RETURN(const std::string program, ProgramFile());
  return std::filesystem::path(program).parent_path().parent_path().string();
}

}  // namespace gpusonde
