// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde {

// For programs that run for long beside others: has memory go back to the system once it is freed, where
// the C library would keep it for later. Call it before there are threads. (mallopt(3), M_MMAP_THRESHOLD: by
// default a large block that is freed makes the library keep all blocks of its size, up to 32 MB each.)
void ReturnMemoryEarly();

}  // namespace gpusonde
