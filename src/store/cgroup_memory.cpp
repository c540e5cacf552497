// SPDX-License-Identifier: Apache-2.0
#include "store/cgroup_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>

#include "model/cgroup_owner.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

// The number in a file of the cgroup file system; kNoLimit when it holds something else ("max") or isn't
// there.
int64_t ReadBytes(const std::string& path) {
  int64_t bytes = 0;
  return std::ifstream(path) >> bytes ? bytes : kNoLimit;
}

}  // namespace

int64_t MemoryLimitOfCgroup(std::string_view proc_cgroup, const std::string& mounted_at) {
  // A container sees its own cgroup at the root, whatever the path says.
  int64_t least = std::min(ReadBytes(mounted_at + "/memory.max"),
                           ReadBytes(mounted_at + "/memory/memory.limit_in_bytes"));
  model::ForEachCgroup(proc_cgroup, [&](std::string_view controllers, std::string_view path) {
    if ((!controllers.empty() && controllers != "memory") || !path.starts_with('/')) return;
    const bool v1 = !controllers.empty();
    // Each ancestor limits it too.
    for (; path.size() > 1; path = path.substr(0, path.rfind('/')))
      least = std::min(least, ReadBytes(fmt::format("{}{}{}/{}", mounted_at, v1 ? "/memory" : "", path,
                                                    v1 ? "memory.limit_in_bytes" : "memory.max")));
  });
  return least;
}

}  // namespace gpusonde::store
