// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sources/perf/sideband.h"

namespace gpusonde::agent {

// Emulates the kernel's process events by polling /proc, for users without privileges. Misses processes that
// begin and end between two polls, and reports no mappings. Not thread-safe.
class ProcEvents {
 public:
  // Follows this process and every child found. The process itself is not reported: the caller knows it
  // already.
  void Follow(int32_t pid);

  // Appends an event for each change since the last call.
  void Poll(std::vector<perf::SidebandEvent>& events);

 private:
  struct Seen {
    std::string name, executable;
    std::map<int32_t, std::string> threads;  // names by tid
  };
  void LookAt(int32_t pid, Seen& seen, std::vector<perf::SidebandEvent>& events);

  std::map<int32_t, Seen> processes_;
};

}  // namespace gpusonde::agent
