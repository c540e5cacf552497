// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "base/id128.h"
#include "base/time_range.h"
#include "diagnose/host_timeline.h"
#include "diagnose/path_account.h"

namespace gpusonde::diagnose {

// The GPU work of a program in a step, and its waits for it, also those just before and after; each sorted by
// start. Ranges may overlap.
struct GpuWork {
  std::vector<TimeRange> kernels;
  std::vector<TimeRange> copies;
  std::vector<TimeRange> syncs;
  // Of the process's other loops: kernels and copies, and waits for them.
  std::vector<TimeRange> of_other_loops, syncs_of_other_loops;
};

// The program whose steps are accounted for.
struct Program {
  Id128 process;
  int32_t launch_thread = 0;  // the thread that launches the GPU work of the step
  int32_t main_thread = 0;    // the process's first one
  std::set<Id128> family;     // the process and its descendants
  // Processes of the family that the launch thread has waited for: its loaders.
  std::set<Id128> loaders;
  // Other processes with GPU work and their launch threads, and those that this launch thread has waited for:
  // the ranks of its job.
  std::map<Id128, int32_t> launch_threads;
  std::set<Id128> ranks;
};

// Splits the time of a step into exclusive states. Before its launch thread started, the step was in the main
// thread, as in a server that starts a thread for each request. While the launch thread waits for the GPU,
// the state is that of the GPU; while it waits for another process of the family, the state is what that
// process does. While it waits for another rank, the chain of waiting ranks is followed, and the time belongs
// to the last rank.
PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu,
                       const TimeRange& step);

// Fills in only what the loaders did, as AccountFor does: for steps that were accounted for before these were
// known to be loaders.
void AccountForLoaders(const Program& program, const HostTimeline& host, const TimeRange& step,
                       PathAccount& account);

}  // namespace gpusonde::diagnose
