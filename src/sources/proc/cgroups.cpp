// SPDX-License-Identifier: Apache-2.0
#include "sources/proc/cgroups.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/fd.h"
#include "base/text.h"
#include "model/cgroup_owner.h"

namespace gpusonde::proc {
namespace {

constexpr int kMaxLevels = 32;  // limits of deeper ones are not read

std::string Listed(std::string_view words) { return fmt::format(",{},", words); }

// The mount points of the v1 hierarchy with a controller, and of the v2 hierarchy.
struct Mounts {
  std::string v1, v2;
};

Mounts FindMounts(std::string_view controller) {
  Mounts mounts;
  const Result<std::string> text = ReadFile("/proc/self/mounts");
  if (!text.has_value()) return mounts;
  std::string_view rest = *text;
  while (!rest.empty()) {
    const std::string_view line = TakeLine(rest);
    const size_t folder = line.find(' ');
    const size_t type = folder == std::string_view::npos ? folder : line.find(' ', folder + 1);
    const size_t options = type == std::string_view::npos ? type : line.find(' ', type + 1);
    if (options == std::string_view::npos) continue;
    const std::string path(line.substr(folder + 1, type - folder - 1));
    const std::string_view kind = line.substr(type + 1, options - type - 1);
    const std::string words = Listed(line.substr(options + 1, line.find(' ', options + 1) - options - 1));
    if (kind == "cgroup2" && mounts.v2.empty()) mounts.v2 = path;
    if (kind == "cgroup" && words.find(Listed(controller)) != std::string::npos && mounts.v1.empty())
      mounts.v1 = path;
  }
  return mounts;
}

// The path of the process in a hierarchy, from the text of /proc/PID/cgroup; without a controller, in v2's.
std::optional<std::string> PathIn(std::string_view cgroup, std::string_view controller) {
  std::optional<std::string> found;
  model::ForEachCgroup(cgroup, [&](std::string_view controllers, std::string_view path) {
    if (!found.has_value() && Listed(controllers).find(Listed(controller)) != std::string::npos) found = path;
  });
  return found;
}

}  // namespace

std::vector<CgroupFolder> CgroupFolders(int32_t pid, std::string_view controller) {
  const Result<std::string> cgroup = ReadFile(fmt::format("/proc/{}/cgroup", pid));
  if (!cgroup.has_value()) return {};
  const Mounts mounts = FindMounts(controller);
  const bool v1 = !mounts.v1.empty();
  const std::string& root = v1 ? mounts.v1 : mounts.v2;
  std::optional<std::string> path = PathIn(*cgroup, v1 ? controller : "");
  if (root.empty() || !path.has_value()) return {};
  std::vector<CgroupFolder> folders;
  for (int level = 0; level < kMaxLevels; ++level) {
    folders.push_back({.path = root + *path + (path->ends_with('/') ? "" : "/"), .v1 = v1});
    if (path->size() <= 1) break;
    path->resize(std::max<size_t>(path->rfind('/'), 1));
  }
  return folders;
}

}  // namespace gpusonde::proc
