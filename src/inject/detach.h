// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "inject/cupti.h"

// Removes CUPTI from the process when the library falls asleep. Without subscription and enabled kinds CUPTI
// still slows down launches: by 1.2 us of 3.7 on an H200 (CUDA 13.0, docs/gpu-results.md), until
// cuptiFinalize. That is safe at the exit of a CUDA call only (cupti_activity.h), so the program's next call
// makes it. Until then the subscription stays. Thread-safe, but for one thread that requests and withdraws.
namespace gpusonde::inject {

// Whether this CUPTI can be finalized. Before CUDA 13 it is not: programs with CUDA graphs crash when CUPTI
// is initialised again after it (PyTorch's profiler avoids it for that reason).
bool CanFinalize(const Cupti& cupti);

void RequestFinalize(const Cupti& cupti);

// Withdraws a request. False: there is none, or it was fulfilled, and the subscription with it; waits for
// that.
bool WithdrawFinalize();

// Whether a request is not fulfilled yet.
bool FinalizePending();

// Called at the exit of a CUDA call of the program, when CUPTI is used for nothing else any more.
void FinalizeIfRequested();

}  // namespace gpusonde::inject
