// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace gpusonde::inject {

// Begins the library's life in this process; called once CUDA initialises (again has no effect). If somebody
// listens already, CUPTI is on when this returns, before the first module is loaded, and the listener is
// ready to take stacks, for which it has at most half a second. What can't be had leaves the library asleep;
// nothing is ever said to the host.
//
// A thread of the library's then looks four times a second whether anybody listens. Asleep, nothing of ours
// is known to CUPTI. A forked child has no such thread and never speaks: CUDA doesn't survive a fork either.
void Start();

// Wakes the library's thread before its time: buffers wait. From any thread; one system call.
void CallThread();

}  // namespace gpusonde::inject
