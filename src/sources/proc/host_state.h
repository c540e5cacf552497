// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sources/proc/cgroups.h"

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

// The process's cgroup and its ancestors that have a file cpu.stat, as far as they are visible here; cgroup
// v1 (controller cpu) or v2. Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst.
std::vector<CgroupFolder> CpuCgroups(int32_t pid);
// Throttled time of these cgroups, summed.
std::optional<int64_t> ReadThrottledNs(std::span<const CgroupFolder> cgroups);
// Parses throttled_time (v1, ns) or throttled_usec (v2).
std::optional<int64_t> ParseThrottledNs(std::string_view cpu_stat);
// The lowest CPU quota of these cgroups, in CPUs: 0.5 is 50 ms in 100 ms. nullopt if none has one.
std::optional<double> ReadCpuQuota(std::span<const CgroupFolder> cgroups);
// Parses cpu.max (v2): "50000 100000", µs; or cpu.cfs_quota_us and cpu.cfs_period_us (v1), joined by a space.
std::optional<double> ParseCpuQuota(std::string_view quota_and_period);

}  // namespace gpusonde::proc
