// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/account.h"
#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// The GPU work of a program, and its waits for it; each sorted by start. Ranges may overlap.
struct GpuWork {
  std::vector<TimeRange> kernels;
  std::vector<TimeRange> copies;
  std::vector<TimeRange> syncs;
};

// The program whose steps are accounted for.
struct Program {
  Id128 process;
  int32_t launch_thread = 0;  // the thread that launches the GPU work of the step
  std::set<Id128> family;     // the process and its descendants
  // Processes of the family that the launch thread has waited for: its loaders.
  std::set<Id128> loaders;
  // Other processes with GPU work and their launch threads, and those that this launch thread has waited for:
  // the ranks of its job.
  std::map<Id128, int32_t> launch_threads;
  std::set<Id128> ranks;
};

// What a rank did while others waited for it, ns, and who ran while it was runnable.
struct RankAccount {
  Account states;
  double idle = 0;  // it slept, was stopped, or waited for an unknown process
  std::map<Id128, double> behind;
};

// A step's time by state, and the run-queue delay of its path by who ran instead (ns; zero id: unknown).
struct PathAccount {
  Account states;
  // The part of it that is waits for external events: sleeps that the launch thread or a process that it
  // waited for asked for, and waits that an unknown process ended.
  Account idle;
  double launch_thread_asleep = 0;  // of the idle time: sleeps that the launch thread asked for
  double packets = 0;  // of the idle time: the process itself waited for packets of unknown origin
  std::map<Id128, double> behind;
  double own_threads = 0;  // of State::kLoader: other threads of the launch thread's process
  // State::kStopped by the process that was stopped, and by who let it continue (zero id: unknown).
  std::map<Id128, double> halted, stopped_by;
  // State::kLoader, and the sleeps of others than the launch thread, by the process that ran or slept.
  std::map<Id128, double> ran, slept;
  // State::kWaiting by the process outside the program and its job that ended the wait, where it is known.
  std::map<Id128, double> waited_outside;
  std::map<Id128, RankAccount> ranks;  // State::kPeer by the rank that came last
  // What the loaders did in the whole step, whether or not anyone waited for them: the sum over all loaders,
  // without their own waits.
  Account loaders;
  std::map<Id128, double> loaders_behind;

  void Add(const PathAccount& other, double factor);
  // Removes the idle time from the states. Returns its length, ns.
  double RemoveIdle();
};

// Splits [from, to) into exclusive states. While the launch thread waits for the GPU, the state is that of
// the GPU; while it waits for another process of the family, the state is what that one does. While it waits
// for another rank, the chain of waiting ranks is followed, and the time belongs to the last one.
PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu, int64_t from_ns,
                       int64_t to_ns);

// Fills in only what the loaders did, as AccountFor does: for steps that were accounted for before these were
// known to be loaders.
void AccountForLoaders(const Program& program, const HostTimeline& host, int64_t from_ns, int64_t to_ns,
                       PathAccount& account);

}  // namespace gpusonde::diagnose
