// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>

namespace gpusonde {

void ReturnMemoryEarly() {
  constexpr int kBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
}

}  // namespace gpusonde
