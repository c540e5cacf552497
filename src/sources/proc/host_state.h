// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// What the kernel's files say of the machine's and of cgroups' troubles: counters, ns since boot or since the
// cgroup was made. Nothing where this kernel doesn't tell.
namespace gpusonde::proc {

enum class Resource : uint8_t { kCpu, kIo, kMemory };

// Time in which somebody waited for the resource (Documentation/accounting/psi.rst: "some").
std::optional<int64_t> ReadPressureNs(Resource resource);
// Of the text of /proc/pressure/*.
std::optional<int64_t> ParsePressureNs(std::string_view text);

// Time that the hypervisor gave to others while CPUs had work, over all CPUs (proc_stat(5)).
std::optional<int64_t> ReadStealNs();
std::optional<int64_t> ParseStealNs(std::string_view stat);

// The cpu.stat files of the process's cgroup and of those above it, as far as they are visible here; cgroup
// v1 (controller cpu) or v2. Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst.
std::vector<std::string> CpuStatFiles(int32_t pid);
// Time in which CPUs that had work of these cgroups were not let do it, summed over the files.
std::optional<int64_t> ReadThrottledNs(const std::vector<std::string>& cpu_stat_files);
// throttled_time (v1, ns) or throttled_usec (v2).
std::optional<int64_t> ParseThrottledNs(std::string_view cpu_stat);

}  // namespace gpusonde::proc
