// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/id128.h"
#include "diagnose/account.h"
#include "diagnose/actors.h"
#include "diagnose/clean_baseline.h"

namespace gpusonde::diagnose {

// Something outside a program that keeps it from going on in every step, so that none is slower for it.
struct LastingDisturbance {
  State state;
  std::string sentence;  // what, how much of each step, by whom, and what to do about it
};

// What the steps of a program usually do.
struct UsualStep {
  int64_t steps = 0;  // the newest ones outside of incidents, which it is the mean of
  Account states;     // per step, ns
  std::vector<LastingDisturbance> disturbances;  // the largest first
};

// `family`: the program's own processes. Without steps if there are too few to say what is usual.
UsualStep UsualStepOf(const CleanBaseline& baseline, const Actors& actors, const std::set<Id128>& family);

}  // namespace gpusonde::diagnose
