// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/result.h"

// What the user space of every BPF program needs.
namespace gpusonde::ebpf {

// Turns a failure to load or attach a BPF program into an error that names its most likely cause and the
// remedy.
Error Explain(int error_number, std::string_view what);

// Redirects libbpf's messages to our log, at level debug.
void SendLibbpfToLog();

// The inode of our pid namespace, for the BPF programs (bpf/pids.h), so that their pids are the same as in
// /proc; 0 when it is the initial one or can't be read.
uint32_t PidNamespace();

// Adds a process to a BPF program's list of targets (bpf/targets.h), unless it has ended, and invalidates its
// cache of non-targets. Errors: kOutOfSpace when the list is full. One thread at a time per list.
Status AddTarget(int targets_fd, int changes_fd, int32_t pid);

}  // namespace gpusonde::ebpf
