// SPDX-License-Identifier: Apache-2.0
#include "store/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>

namespace gpusonde::store {
namespace {

constexpr int64_t kMaxDefault = int64_t{2} << 30;

std::atomic<int64_t> limit_bytes = 0;  // 0: the default

// The number in a file of the cgroup file system; `none` when it holds something else ("max") or isn't there.
int64_t ReadBytes(const char* path, int64_t none) {
  int64_t bytes = 0;
  return std::ifstream(path) >> bytes ? bytes : none;
}

}  // namespace

int64_t UsableMemory() {
  const int64_t machine = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  // As a container sees its own cgroup, version 2 and version 1; elsewhere these are the machine's.
  const int64_t container = std::min(ReadBytes("/sys/fs/cgroup/memory.max", machine),
                                     ReadBytes("/sys/fs/cgroup/memory/memory.limit_in_bytes", machine));
  return std::min(machine, container);
}

int64_t DefaultMemoryLimit() { return std::clamp(UsableMemory() / 8, kMinMemoryLimit, kMaxDefault); }

int64_t MemoryLimit() {
  const int64_t set = limit_bytes.load();
  return set > 0 ? set : DefaultMemoryLimit();
}

bool MemoryLimitIsSet() { return limit_bytes.load() > 0; }

void SetMemoryLimit(int64_t bytes) { limit_bytes = bytes; }

}  // namespace gpusonde::store
