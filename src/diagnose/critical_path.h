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
};

// A step's time by state, and who had the CPUs that its path waited for (ns; the zero id: nobody known).
struct PathAccount {
  Account states;
  std::map<Id128, double> behind;
  // What the loaders did in the whole step, whoever waited; the sum of them, without their own waits.
  Account loaders;
  std::map<Id128, double> loaders_behind;

  void Add(const PathAccount& other, double factor);
};

// Splits [from, to) into exclusive states. Within a wait for the GPU it is the GPU that counts; where the
// feeder waits for another process of the family, what that one does meanwhile.
PathAccount AccountFor(const Program& program, const HostTimeline& host, const GpuWork& gpu, int64_t from_ns,
                       int64_t to_ns);

// How long the union of the intervals is within [from, to).
double CoveredNs(std::span<const Interval> intervals, int64_t from_ns, int64_t to_ns);

}  // namespace gpusonde::diagnose
