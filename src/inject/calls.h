// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/cupti.h"

// The callback that runs at entry and exit of every CUDA call of the host while the library is awake.
// Thread-safe. A call that isn't sampled takes no lock, makes no system call and writes thread-local memory
// only.
namespace gpusonde::inject {

// CUPTI's callback for all domains; `user` is the Cupti table.
void OnCallback(void* user, uint32_t domain, uint32_t callback_id, const void* data);

// Subscribes to the calls and events that OnCallback handles. Skips callbacks that this version of CUPTI
// doesn't have.
void EnableCallbacks(const Cupti& cupti, gpusonde_cupti_subscriber_handle subscriber);

// Enables the callbacks that say that the program uses graphs (inject/detach.h): before any kind of record.
void EnableGraphLaunches(const Cupti& cupti, gpusonde_cupti_subscriber_handle subscriber);

// Sets the session that calls belong to from now on; with 0, OnCallback only sees to what inject/detach.h
// needs.
void SetCallSession(uint32_t session);
uint32_t CallSession();

// Sets the GPU time of each sampling class, from which the next second's probabilities follow: BeginTimes
// clears, AddTime adds the time of a kernel by the hash of its name, EndTimes publishes. One thread at a
// time.
void BeginTimes();
void AddTime(uint64_t name_hash, uint64_t time_ns);
void EndTimes();

// Begins a new second: at its next call each thread recomputes its sampling probabilities.
void NextSecond();

// Sampled calls since the process began, and the time spent on them.
struct CallProgress {
  uint64_t calls;
  uint64_t cost_ns;
};
CallProgress GetCallProgress();

// Whether CUPTI has reported a fatal error, or that another tool failed to subscribe because of us. Clears
// the flag.
bool TestAndClearFatalError();
bool TestAndClearRivalSeen();

}  // namespace gpusonde::inject
