// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>

#include "diagnose/critical_path.h"

namespace gpusonde::diagnose {

// Learns from clean steps whether a program waits for the world between them by habit: a server for requests,
// a loop for its next turn. How long it waits says nothing of how fast it is, so that this is no part of its
// steps. Not thread-safe.
class Habit {
 public:
  // Returns true when this step settles that it does; from then on steps are wanted no more.
  bool Take(const PathAccount& clean);

  bool waits() const { return waits_; }

 private:
  struct Step {
    double total_ns, idle_ns, asleep_ns;
  };

  std::deque<Step> steps_;
  bool waits_ = false;
};

}  // namespace gpusonde::diagnose
