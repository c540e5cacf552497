// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::store {

// How much memory the databases of this process may hold; what doesn't fit goes to temporary files. As set,
// else DefaultMemoryLimit(). Thread-safe.
int64_t MemoryLimit();
// To be called before a store is opened.
void SetMemoryLimit(int64_t bytes);
bool MemoryLimitIsSet();

// An eighth of the memory that this process may use (the machine's, or its cgroup's), from 128 MiB to 2 GiB:
// a query is not the only thing that a machine does.
int64_t DefaultMemoryLimit();

inline constexpr int64_t kMinMemoryLimit = int64_t{128} << 20;

}  // namespace gpusonde::store
