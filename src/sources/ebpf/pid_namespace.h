// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::ebpf {

// The inode of our pid namespace, for the BPF programs (bpf/pids.h), so that their pids are the same as in
// /proc; 0 when it is the initial one or can't be read.
uint32_t PidNamespace();

}  // namespace gpusonde::ebpf
