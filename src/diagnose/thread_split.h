// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diagnose/host_timeline.h"

namespace gpusonde::diagnose {

// A thread's time in an interval, in parts that exclude each other, ns.
struct ThreadParts {
  double cpu = 0;          // ran, but for the next two
  double interrupted = 0;  // interrupts and softirqs ran on its CPU
  double reclaim = 0;      // it reclaimed memory, running or blocked
  double blocked = 0;
  double blocked_io = 0;
  double run_queue = 0;
  double waiting = 0;
  double sleeping = 0;
  double network = 0;
  double stopped = 0;

  double total() const {
    return cpu + interrupted + reclaim + blocked + blocked_io + run_queue + waiting + sleeping + network +
           stopped;
  }
};

// Splits a thread's time. The parts sum to its total: interrupts are taken out of running, and reclaim out of
// what is left of running first, then out of blocked, then out of blocked for I/O, as pages that are
// reclaimed may have to be written. A part that is longer than what it is part of, as signals arrive
// separately, is cut.
ThreadParts SplitTime(const ThreadTime& time);

}  // namespace gpusonde::diagnose
