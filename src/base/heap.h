// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde {

// Makes the C library return freed memory to the system at once, for long-running programs that share a
// machine with others. Call it before any thread starts. (mallopt(3), M_MMAP_THRESHOLD: by default, after a
// large block was freed the library keeps all freed blocks of that size, up to 32 MB each.)
void ReturnMemoryEarly();

// Makes the C library keep freed memory for what is allocated next, blocks of less than 32 MiB and 64 MiB at
// the heap's end, for programs that end when their work is done. (By default, blocks of 128 KiB and more go
// back to the system until one was freed, and the heap's end whenever 128 KiB of it are free; each page that
// comes again is a page fault.) Call it before any thread starts.
void KeepMemory();

// Memory of this process that is in RAM now, in bytes. Source: /proc/self/statm.
int64_t ResidentBytes();

}  // namespace gpusonde
