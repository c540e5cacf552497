// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "diagnose/thread_time.h"

namespace gpusonde::diagnose {

// A thread's time in an interval by states that all exclude each other, ns.
using ThreadParts = TimeBy<ThreadState, kThreadStates>;

// Splits a thread's time. The parts sum to its total: interrupts are taken out of running, and reclaim out of
// what is left of running first, then out of blocked, then out of blocked for I/O, as pages that are
// reclaimed may have to be written; displaced time stays in the run queue. A part that is longer than what it
// is part of, as signals arrive separately, is cut.
ThreadParts SplitTime(const ThreadTime& time);

}  // namespace gpusonde::diagnose
