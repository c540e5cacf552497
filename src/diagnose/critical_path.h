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
#include "diagnose/account.h"
#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// A stretch of time, ns.
struct Interval {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

// What a program's GPU did, and when the program waited for it; each by start. Intervals may overlap.
struct GpuWork {
  std::vector<Interval> kernels;
  std::vector<Interval> copies;
  std::vector<Interval> syncs;
};

// The program whose steps are accounted for.
struct Program {
  Id128 process;
  int32_t feeder = 0;      // the thread that feeds the GPU
  std::set<Id128> family;  // the process and its descendants
  // Of them, those that the feeder has ever waited for: its loaders.
  std::set<Id128> loaders;
  // Other processes that feed a GPU, with the thread that does, and those of them that the feeder has ever
  // waited for: ranks of its job.
  std::map<Id128, int32_t> feeders;
  std::set<Id128> ranks;
};

// What a rank did while others waited for it, ns, and who had the CPUs that it waited for.
struct RankAccount {
  Account states;
  double idle = 0;  // it slept, or waited itself for nobody known
  std::map<Id128, double> behind;
};

// A step's time by state, and who had the CPUs that its path waited for (ns; the zero id: nobody known).
struct PathAccount {
  Account states;
  // Of these, waits for the world outside: sleep that the feeder asked for, and waits that nobody known
  // ended.
  Account idle;
  std::map<Id128, double> behind;
  std::map<Id128, RankAccount> ranks;  // of State::kPeer, by who came last
  // What the loaders did in the whole step, whoever waited; the sum of them, without their own waits.
  Account loaders;
  std::map<Id128, double> loaders_behind;

  void Add(const PathAccount& other, double factor);
  // Takes the idle time out of the states. Returns how long it was, ns.
  double TakeIdle();
};

// Splits [from, to) into exclusive states. Within a wait for the GPU it is the GPU that counts; where the
// feeder waits for another process of the family, what that one does meanwhile. Where it waits for another
// rank, which may wait for another itself, the time is the last one's of that chain.
PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu, int64_t from_ns,
                       int64_t to_ns);

// Only what the loaders did, as AccountFor puts it into `account`: for a time before they were known to be
// loaders.
void AccountForLoaders(const Program& program, const HostTimeline& host, int64_t from_ns, int64_t to_ns,
                       PathAccount& account);

// How long the union of the intervals is within [from, to).
double CoveredNs(std::span<const Interval> intervals, int64_t from_ns, int64_t to_ns);

}  // namespace gpusonde::diagnose
