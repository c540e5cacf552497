// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "doctor/capability.h"

// Findings that several probes share.
namespace gpusonde::doctor {

// The failure of a system call that needs privileges, with advice: which privilege it needs, or that the
// kernel doesn't support it. `what` is the attempt: "load a program".
Finding FailsWithErrno(int error_number, std::string_view what);

// A setting of the kernel under /proc/sys, e.g. "kernel/perf_event_paranoid"; "unknown" when it can't be
// read.
std::string KernelSetting(std::string_view name);

inline constexpr std::string_view kNeedsPrivileges =
    "run as root, or give the program CAP_BPF and CAP_PERFMON (in a container: on the host's user namespace)";
inline constexpr std::string_view kNeedsKernel =
    "use Linux 5.15 or newer, built with CONFIG_BPF_SYSCALL, CONFIG_PERF_EVENTS and CONFIG_DEBUG_INFO_BTF";

}  // namespace gpusonde::doctor
