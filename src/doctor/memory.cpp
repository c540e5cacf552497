// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "doctor/probes.h"
#include "store/memory_limit.h"

namespace gpusonde::doctor {
namespace {

// What `up` may take with the memory of its children and of its kernel maps. On a 2-core machine it was
// killed within 25 s in a cgroup of 150 MB, and took 217 MB at most in one of 256 MB.
constexpr int64_t kEnoughBytes = 256'000'000;

}  // namespace

Finding ProbeMemory(const Settings&) {
  const int64_t bytes = store::UsableMemory();
  if (bytes < kEnoughBytes)
    return Fails(fmt::format("{} MB may be used; `gpusonde up` may take {} MB, and the kernel kills what "
                             "exceeds the limit of its cgroup",
                             bytes / 1'000'000, kEnoughBytes / 1'000'000),
                 "allow more memory (memory.max of the cgroup, MemoryMax= in a systemd unit)");
  return Works(fmt::format("{} MB may be used", bytes / 1'000'000));
}

}  // namespace gpusonde::doctor
