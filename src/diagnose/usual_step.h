// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnose/account.h"

namespace gpusonde::diagnose {

struct SituationContext;

// Something outside a program that disturbs it in every step, so that none is slower for it.
struct LastingDisturbance {
  State state;           // the part of the steps' time that it lengthens
  std::string sentence;  // what, how much of each step, by whom, and what to do about it
};

// What the steps of a program usually do.
struct UsualStep {
  int64_t steps = 0;  // the newest ones outside of incidents, which it is the mean of
  Account states;     // per step, ns
  Account between;    // before each step, ns: waits that aren't part of it (habit.h)
  std::vector<LastingDisturbance> disturbances;  // those of the host with the most time first
};

// Without steps if there are too few to say what is usual.
UsualStep UsualStepOf(const SituationContext& context);

}  // namespace gpusonde::diagnose
