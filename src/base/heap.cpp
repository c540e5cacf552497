// SPDX-License-Identifier: Apache-2.0
#include "base/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>

namespace gpusonde {

void ReturnMemoryEarly() {
  constexpr int kBytes = 1 << 20;
  ::mallopt(M_MMAP_THRESHOLD, kBytes);
  ::mallopt(M_TRIM_THRESHOLD, kBytes);
}

void KeepMemory() {
  constexpr int kLargestThreshold = 32 << 20;  // that mallopt accepts
  ::mallopt(M_MMAP_THRESHOLD, kLargestThreshold);
  ::mallopt(M_TRIM_THRESHOLD, 2 * kLargestThreshold);
}

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all_pages = 0;
  int64_t resident_pages = 0;
  file >> all_pages >> resident_pages;
  return resident_pages * ::sysconf(_SC_PAGESIZE);
}

}  // namespace gpusonde
