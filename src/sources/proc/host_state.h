// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Counters of contention on the machine and in cgroups, from the kernel's files: ns since boot, or since the
// cgroup was created. nullopt where this kernel doesn't have them.
namespace gpusonde::proc {

enum class Resource : uint8_t { kCpu, kIo, kMemory };

// Time in which at least one task was stalled on the resource (Documentation/accounting/psi.rst: "some").
std::optional<int64_t> ReadPressureNs(Resource resource);
// Parses the text of /proc/pressure/*.
std::optional<int64_t> ParsePressureNs(std::string_view text);

// Steal time over all CPUs: while a CPU had work, the hypervisor ran something else (proc_stat(5)).
std::optional<int64_t> ReadStealNs();
std::optional<int64_t> ParseStealNs(std::string_view stat);

// The cpu.stat files of the process's cgroup and its ancestors, as far as they are visible here; cgroup v1
// (controller cpu) or v2. Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst.
std::vector<std::string> CpuStatFiles(int32_t pid);
// Throttled time of these cgroups, summed over the files.
std::optional<int64_t> ReadThrottledNs(const std::vector<std::string>& cpu_stat_files);
// Parses throttled_time (v1, ns) or throttled_usec (v2).
std::optional<int64_t> ParseThrottledNs(std::string_view cpu_stat);

}  // namespace gpusonde::proc
