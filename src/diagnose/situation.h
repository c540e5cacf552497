// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/account.h"
#include "diagnose/actor.h"
#include "diagnose/cause_id.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {

// A value before and during the incident; nullopt where it wasn't measured.
struct Change {
  std::optional<double> before;
  std::optional<double> during;

  bool known() const { return before.has_value() && during.has_value(); }
  double rise() const { return known() ? *during - *before : 0; }
};

// Another rank that the workload waited for; means per step, ns.
struct RankPart {
  std::string name;  // "python (process 412)"
  Account before, during;
  double idle_before = 0, idle_during = 0;  // it slept, was stopped, or waited for an unknown process
  Shares cpu_before, cpu_during;
  // If that rank has an incident of its own with a known cause: the cause, and the sentence.
  std::optional<CauseId> cause;
  std::string because;

  double rise() const { return during.total() - before.total(); }
  double idle_rise() const { return std::max(0.0, idle_during - idle_before); }
};

// Another process of the program: one that ended about when the incident began, or, if a step doesn't end,
// one that the launch thread had waited for before.
struct HelperPart {
  std::string name;  // "python (process 413)"
  bool waited_for = false;
  bool ended = false;
  double busy = 0;       // of a CPU since the step began, if it hasn't ended
  bool stopped = false;  // now, by a signal or a tracer
  bool blocked = false;  // now, in the kernel
};

// The input of Cause::evaluate: the baseline and the incident side by side.
struct Situation {
  int32_t tid = 0;  // of the loop's thread; 0: the process's first loop
  int64_t onset_ns = 0;
  double slowdown = 1;
  std::string cgroup;  // of the workload, as of an actor
  int64_t steps = 0;   // since the onset, with the unfinished one
  // Means per step, ns: of clean steps of the same types, and of the steps since the onset.
  Account before, during;
  // The longest time within one step in which its critical path was stopped or blocked, or waited for
  // something that was idle itself.
  double idle_ns = 0;
  bool unfinished = false;        // the newest step hasn't ended
  double unfinished_ns = 0;       // its length so far
  int64_t silent_ns = 0;          // time since the last GPU work
  bool signals_known = false;     // whether any host signals of the workload were received
  bool before_is_later = false;   // `before` is the time after the incident: none is known before it
  Shares cpu_before, cpu_during;  // run-queue delay of the critical path by who ran instead, ns per step
  // The part of State::kLoader that is other threads of the launch thread's process, ns per step.
  double own_threads_before = 0, own_threads_during = 0;
  // CPU time of the other threads of the launch thread's process, whether or not it waited for them, ns per
  // step; 0 if it didn't wait for them more than before.
  double own_threads_cpu_before = 0, own_threads_cpu_during = 0;
  // Time in which the critical path was stopped, by the process that was stopped if that isn't the workload
  // itself, and by who let it continue; ns per step.
  Shares halted_before, halted_during, stopped_before, stopped_during;
  // Time in which it waited for a process outside the program and its job; ns per step.
  Shares outside_before, outside_during;
  // Time in which it waited for a process of the program, or another of its threads, that ran or slept by
  // itself; ns per step.
  Shares ran_before, ran_during, slept_before, slept_during;
  // Of that sleep, the part of other threads of the launch thread's process; not in the shares.
  double own_threads_slept_before = 0, own_threads_slept_during = 0;
  // Time in which it waited for those threads while they did nothing; ns per step.
  double own_threads_idle_before = 0, own_threads_idle_during = 0;
  Shares disk_before, disk_during;  // bytes per second
  // Bytes per second that had to queue for a network device; the ranks of the job count as `own`, too.
  Shares network_before, network_during;
  // TCP segments per second that the workload and the other ranks of its job retransmitted.
  Change retransmits;
  std::vector<RankPart> ranks;
  std::vector<HelperPart> helpers;
  // CPU time of the loaders, whether or not the launch thread waited for them; ns per step.
  double loader_cpu_before = 0, loader_cpu_during = 0;
  // CPU time of all threads of the workload, ns per second.
  Change own_cpu;
  // Values by metric of the catalogue: sums as shares or amounts per second, gauges as means.
  std::map<model::Metric, Change> signals;
  // GPU time by name of kernels and kind of copies, ns per step: what has grown most. Estimated from the time
  // that they took before the incident, and in it.
  std::map<std::string, Change> gpu_time;
  // GPU utilization (%) of other processes, by name.
  std::map<std::string, Change> neighbours;
  std::vector<int64_t> xids;  // XID errors during the incident

  double excess_ns() const { return during.total() - before.total(); }
  // Sum of the states that have grown. The excess is smaller by what other states have shrunk.
  double lost_ns() const {
    double sum = 0;
    for (size_t i = 0; i < kStates; ++i) sum += std::max(0.0, during.ns[i] - before.ns[i]);
    return sum;
  }
  double excess(State state) const { return during[state] - before[state]; }
  Change Of(model::Metric metric) const {
    const auto found = signals.find(metric);
    return found == signals.end() ? Change{} : found->second;
  }
};

}  // namespace gpusonde::diagnose
