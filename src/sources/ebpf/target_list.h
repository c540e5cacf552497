// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpusonde::ebpf {

// Adds a process to a BPF program's list of targets (bpf/targets.h) and invalidates its cache of non-targets.
// Fails when the list is full. One thread at a time per list.
Status AddTarget(int targets_fd, int changes_fd, int32_t pid);

}  // namespace gpusonde::ebpf
