// SPDX-License-Identifier: Apache-2.0
#include "store/memory_limit.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>

#include "base/fd.h"
#include "store/cgroup_memory.h"

namespace gpusonde::store {
namespace {

constexpr int64_t kMaxDefault = int64_t{2} << 30;

std::atomic<int64_t> limit_bytes = 0;  // 0: the default

int64_t ReadUsableMemory() {
  const int64_t machine = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  const Result<std::string> cgroup = ReadFile("/proc/self/cgroup");
  return std::min(machine, MemoryLimitOfCgroup(cgroup.value_or(""), "/sys/fs/cgroup"));
}

}  // namespace

int64_t UsableMemory() {
  // Once: the sandbox of readers hides most of these files.
  static const int64_t bytes = ReadUsableMemory();
  return bytes;
}

int64_t DefaultMemoryLimit() { return std::clamp(UsableMemory() / 8, kMinMemoryLimit, kMaxDefault); }

int64_t MemoryLimit() {
  const int64_t set = limit_bytes.load();
  return set > 0 ? set : DefaultMemoryLimit();
}

bool MemoryLimitIsSet() { return limit_bytes.load() > 0; }

void SetMemoryLimit(int64_t bytes) { limit_bytes = bytes; }

}  // namespace gpusonde::store
