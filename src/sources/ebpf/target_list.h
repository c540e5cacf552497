// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/result.h"

namespace gpusonde::ebpf {

// Adds a process to the list that a kernel program tells of (bpf/targets.h), and has the program look again
// at whom it remembers as not on it. Fails when the list is full. One thread at a time for each list.
Status AddTarget(int targets_fd, int changes_fd, int32_t pid);

}  // namespace gpusonde::ebpf
