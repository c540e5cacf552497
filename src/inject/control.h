// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::inject {

// Starts the library in this process, when CUDA initialises or NCCL has loaded it as its profiler plugin;
// later calls have no effect. If a consumer (a process that has attached to the probes, or the reader of the
// socket) is present already, CUPTI is enabled when this returns, before the first module is loaded, and the
// consumer is ready to unwind stacks, for which it has at most half a second. On any failure the library
// stays asleep; nothing is reported to the host.
//
// From then on a thread of the library checks four times a second whether there is a consumer. While asleep
// the library has no subscription with CUPTI. A forked child has no such thread and stays silent: CUDA
// doesn't survive a fork either.
void Start();

// Whether this is a forked child of a process in which the library has started. Its locks may be taken for
// ever.
bool IsForkedChild();

// Wakes the library's thread before its next tick, because completed buffers wait. Thread-safe; one system
// call.
void WakeThread();

}  // namespace gpusonde::inject
