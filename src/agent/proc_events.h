// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sources/perf/sideband.h"

namespace gpusonde::agent {

// The kernel's events about processes, made up by looking into /proc: for whoever may not have the real ones.
// What begins and ends between two looks is missed, and nothing is said of mappings. Not thread-safe.
class ProcEvents {
 public:
  // This process, and every child that it is seen to have. It is taken to be known already.
  void Follow(int32_t pid);

  // Appends what has changed since the last look.
  void Look(std::vector<perf::SidebandEvent>& events);

 private:
  struct Seen {
    std::string name, executable;
    std::map<int32_t, std::string> threads;  // names by tid
  };
  void LookAt(int32_t pid, Seen& seen, std::vector<perf::SidebandEvent>& events);

  std::map<int32_t, Seen> processes_;
};

}  // namespace gpusonde::agent
