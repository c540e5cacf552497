// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::ebpf {

// What kernel programs are told of our pid namespace (bpf/pids.h): its inode, or 0 when it is the initial one
// or can't be known. Numbers of processes then mean the same to them, to /proc and to us.
uint32_t PidNamespace();

}  // namespace gpusonde::ebpf
