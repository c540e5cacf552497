// SPDX-License-Identifier: Apache-2.0
#include "base/state_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string_view>

namespace gpusonde {

namespace {

// The specification says to ignore a relative path.
std::optional<std::string> FolderIn(const char* variable) {
  const char* folder = std::getenv(variable);
  if (folder == nullptr || folder[0] != '/') return std::nullopt;
  return std::string(folder) + "/gpusonde";
}

std::string InHome(std::string_view folder) {
  const char* home = std::getenv("HOME");
  return fmt::format("{}/{}/gpusonde", home == nullptr ? "." : home, folder);
}

}  // namespace

std::string DefaultStateFolder() {
  if (::geteuid() == 0) return "/var/lib/gpusonde";
  return FolderIn("XDG_STATE_HOME").value_or(InHome(".local/state"));
}

std::string CacheFolder() {
  const std::string usual = ::geteuid() == 0 ? "/var/cache/gpusonde" : InHome(".cache");
  return FolderIn("XDG_CACHE_HOME").value_or(usual);
}

}  // namespace gpusonde
