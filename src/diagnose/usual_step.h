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
#include "diagnose/critical_path.h"
#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// Something outside a program that disturbs it in every step, so that none is slower for it.
struct LastingDisturbance {
  State state;           // the part of the steps' time that it lengthens
  std::string sentence;  // what, how much of each step, by whom, and what to do about it
};

// What the steps of a program usually do.
struct UsualStep {
  int64_t steps = 0;  // the newest ones outside of incidents, which it is the mean of
  Account states;     // per step, ns
  std::vector<LastingDisturbance> disturbances;  // those of the host with the most time first
};

// What a program's usual steps are found in.
struct UsualScope {
  const Program& program;
  const std::set<Id128>& devices;  // those that the program uses
  const CleanBaseline& baseline;
  const HostTimeline& host;
  const Actors& actors;
};

// Without steps if there are too few to say what is usual.
UsualStep UsualStepOf(const UsualScope& scope);

}  // namespace gpusonde::diagnose
