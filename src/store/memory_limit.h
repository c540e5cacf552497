// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::store {

// The memory limit of this process's databases, in bytes: as set, else DefaultMemoryLimit(). Beyond it they
// spill to temporary files. Thread-safe.
int64_t MemoryLimit();
// Call before opening a store.
void SetMemoryLimit(int64_t bytes);
bool MemoryLimitIsSet();

// An eighth of the memory that this process may use (the machine's, or its cgroup's), between 128 MiB and 2
// GiB, to leave room for other programs.
int64_t DefaultMemoryLimit();

// The machine's memory, or that of this process's cgroup where it is less, in bytes.
int64_t UsableMemory();

inline constexpr int64_t kMinMemoryLimit = int64_t{128} << 20;

}  // namespace gpusonde::store
