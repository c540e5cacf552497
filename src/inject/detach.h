// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/cupti.h"

// Removes CUPTI from the process when the library falls asleep. Without subscription and enabled kinds CUPTI
// still slows down launches (by 1.0 us of 3.7 on an H200, CUDA 13.0: docs/gpu-results.md) and keeps 12 MiB
// of the GPU's memory, until cuptiFinalize. That is to be called at the exit of a CUDA call
// (cupti_activity.h), so the program's next call makes it; until then the subscription stays.
//
// A CUDA graph that was launched while kernels were recorded stays instrumented: each later launch of it
// writes into memory that cuptiFinalize frees, and the program fails with error 719. So programs that use
// graphs keep CUPTI (docs/decisions/0102).
//
// Thread-safe, but for one thread that requests and withdraws.
namespace gpusonde::inject {

// The program creates or launches graphs.
void NoteGraphs();

// Whether CUPTI can be finalized: not when the program uses graphs, nor before CUDA 13, where it was not
// tried.
bool CanFinalize(const Cupti& cupti);

void RequestFinalize(const Cupti& cupti);

enum class Withdrawal : uint8_t {
  kNone,       // there is no request; if there was one, it was fulfilled, and the subscription ended with it
  kWithdrawn,  // the subscription is still there
  kRunning,    // the program's thread still finalizes CUPTI, which must not be called meanwhile
};
// Withdraws a request. Waits until `deadline_ns` (NowNs()) for one that is being fulfilled: a driver that
// hangs may keep the program's thread in cuptiFinalize for ever.
Withdrawal WithdrawFinalize(uint64_t deadline_ns);

// Whether a request is not fulfilled yet.
bool FinalizePending();

// Called at the exit of a CUDA call of the program, when CUPTI is used for nothing else any more.
void FinalizeIfRequested();

// What finalizing took of the program's thread, in ns, since this was last called.
uint64_t TakeFinalizeNs();

}  // namespace gpusonde::inject
