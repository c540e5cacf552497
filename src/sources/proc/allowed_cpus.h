// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace gpusonde::proc {

// Returns the number of CPUs on which at least one of the process's threads may run: their affinity within
// the cpusets of their cgroups (sched_getaffinity(2)). Of more than 256 threads, those with the lowest ids
// count. Returns nullopt for a process that has ended. Thread-safe.
std::optional<int> CountAllowedCpus(int32_t pid);

}  // namespace gpusonde::proc
