// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "sources/source.h"

namespace gpusonde::agent {

// Emulates the kernel's process events by polling /proc, for users without privileges. Misses processes that
// begin and end between two polls, and reports no mappings. Not thread-safe.
class ProcEvents final : public sources::Source {
 public:
  // Follows this process and every child found. The process itself is not reported: the caller knows it
  // already.
  void Follow(int32_t pid);

  // Visits a SidebandEvent for each change since the last call; does not fail.
  Status Drain(const Visit& visit) override;
  model::DropCounts DrainDrops() override { return {}; }
  void Stop() override {}

 private:
  struct Seen {
    std::string name, executable;
    std::map<int32_t, std::string> threads;  // names by tid
  };
  static void LookAt(int32_t pid, Seen& seen, const Visit& visit);

  std::map<int32_t, Seen> processes_;
};

}  // namespace gpusonde::agent
