// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "diagnose/critical_path.h"

namespace gpusonde::diagnose {

// Learns from clean steps whether the program habitually waits for external events between them, as a server
// waits for requests. The length of such waits says nothing about the program's speed, so they are excluded
// from its steps. Not thread-safe.
class Habit {
 public:
  // Returns true once, when this step shows the habit; later steps aren't needed.
  bool Learn(const PathAccount& clean);

  bool waits() const { return waits_; }

 private:
  struct Step {
    double total_ns, idle_ns, asleep_ns;
  };

  std::deque<Step> steps_;
  bool waits_ = false;
};

}  // namespace gpusonde::diagnose
