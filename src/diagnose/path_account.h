// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "base/id128.h"
#include "diagnose/account.h"

namespace gpusonde::diagnose {

// What another rank did while the workload waited for it, ns.
struct RankAccount {
  Account states;
  double idle = 0;                 // it slept, was stopped, or waited for an unknown process
  std::map<Id128, double> behind;  // its run-queue delay, by the process that ran instead
};

// Where the time of a step's critical path went, or that of several steps, ns. Keys are processes; the zero
// id is an unknown one.
struct PathAccount {
  Account states;

  // The part of `states` that was spent waiting for external events: sleeps that the launch thread, or a
  // process that it waited for, asked for; and waits that an unknown process ended.
  Account idle;
  double launch_thread_asleep = 0;  // of the idle time: sleeps of the launch thread itself
  double packets = 0;  // of the idle time: the process itself waited for packets of unknown origin

  // Single states by process.
  std::map<Id128, double> behind;          // run-queue delay, by the process that ran instead
  std::map<Id128, double> halted;          // State::kStopped, by the process that was stopped
  std::map<Id128, double> stopped_by;      // State::kStopped, by the process that let it continue
  std::map<Id128, double> ran;             // State::kLoader, by the process that ran
  std::map<Id128, double> slept;           // sleeps of other threads than the launch thread, by their process
  std::map<Id128, double> waited_outside;  // State::kWaiting for known processes outside the program's job
  std::map<Id128, RankAccount> ranks;      // State::kPeer, by the rank that came last
  double own_threads = 0;                  // of State::kLoader: other threads of the launch thread's process
  double own_threads_idle = 0;             // of State::kWaiting: for those, while they did nothing

  Account between;  // idle time that was removed: before the step, by State

  // What all loaders did in the whole step besides their own waits, whether or not anyone waited for them.
  Account loaders;
  std::map<Id128, double> loaders_behind;

  void Add(const PathAccount& other, double factor);
  // Moves the idle time from the states to `between`, that in sleeps of other threads only if asked to.
  // Returns the length of what it moved, ns.
  double RemoveIdle(bool with_sleeps_of_others);
  double others_asleep() const { return idle[State::kSleeping] - launch_thread_asleep; }  // of the idle time
};

}  // namespace gpusonde::diagnose
