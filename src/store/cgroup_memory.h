// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpusonde::store {

// The least limit, in bytes, of a process's memory cgroup and its ancestors, as far as they are visible below
// `mounted_at` (/sys/fs/cgroup); `proc_cgroup` is the text of /proc/PID/cgroup. INT64_MAX without a limit.
int64_t MemoryLimitOfCgroup(std::string_view proc_cgroup, const std::string& mounted_at);

}  // namespace gpusonde::store
