// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde {

// Makes the C library return freed memory to the system at once, for long-running programs that share a
// machine with others. Call it before any thread starts. (mallopt(3), M_MMAP_THRESHOLD: by default, after a
// large block was freed the library keeps all freed blocks of that size, up to 32 MB each.)
void ReturnMemoryEarly();

// Memory of this process that is in RAM now, in bytes. Source: /proc/self/statm.
int64_t ResidentBytes();

}  // namespace gpusonde
