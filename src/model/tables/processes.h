// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per process, identified by boot id, pid and start time.
struct Process {
  Id128 process;
  Id128 source;
  int32_t pid = 0;
  int32_t parent_pid = 0;
  std::string name;
  std::string command;
  std::string executable;
  std::string cgroup;
  std::optional<int32_t> user_id;
  int64_t started_ns = 0;
  std::optional<int64_t> exited_ns;
};

inline constexpr Table kProcesses(
    "processes", Key{1}, "One row per process, identified by boot id, pid and start time",
    Field("process", &Process::process, "", "hash of boot id, pid and start time"),
    Field("source", &Process::source, "", "the run that observed it"),
    Field("pid", &Process::pid, "", "process id in the host namespace"),
    Field("parent_pid", &Process::parent_pid, "", "process id of the parent when first seen"),
    Field("name", &Process::name, "", "short name (comm)"),
    Field("command", &Process::command, "", "command line"),
    Field("executable", &Process::executable, "", "path of the program, in its own mount namespace"),
    Field("cgroup", &Process::cgroup, "", "cgroup path"),
    Field("user_id", &Process::user_id, "", "real user id; null: unknown, as in traces of other profilers"),
    Field("started_ns", &Process::started_ns, "ns", "start time"),
    Field("exited_ns", &Process::exited_ns, "ns", "end; null while it runs"));

}  // namespace gpusonde::model
