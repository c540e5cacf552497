// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpusonde::proc {

struct CgroupFolder {
  std::string path;  // ends with '/'
  bool v1 = false;
};

// The folders of the process's cgroup and of those above it, the lowest first, as far as they are visible
// here: in the hierarchy of version 1 that has this controller ("cpu", "blkio"), else in that of version 2.
// None for a process that has ended.
std::vector<CgroupFolder> CgroupFolders(int32_t pid, std::string_view controller);

}  // namespace gpusonde::proc
