// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "base/id128.h"
#include "model/tables/processes.h"
#include "sources/proc/process.h"

namespace gpusonde::agent {

// The row of a process that /proc shows, or showed; times since the epoch.
inline model::Process ProcessRow(const proc::ProcessInfo& info, const Id128& process, const Id128& source,
                                 int64_t started_ns, std::optional<int64_t> exited_ns = std::nullopt) {
  return {.process = process,
          .source = source,
          .pid = info.pid,
          .parent_pid = info.parent_pid,
          .name = info.name,
          .command = info.command,
          .executable = info.executable,
          .cgroup = info.cgroup,
          .user_id = info.user_id,
          .started_ns = started_ns,
          .exited_ns = exited_ns};
}

}  // namespace gpusonde::agent
