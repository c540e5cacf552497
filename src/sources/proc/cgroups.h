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

// The folders of the process's cgroup and its ancestors, lowest first, as far as they are visible here: in
// the v1 hierarchy with this controller ("cpu", "blkio"), else in the v2 hierarchy. Empty for a process that
// has ended.
std::vector<CgroupFolder> CgroupFolders(int32_t pid, std::string_view controller);

}  // namespace gpusonde::proc
