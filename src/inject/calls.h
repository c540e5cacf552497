// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "inject/cupti.h"

// The path that every CUDA call of the host takes while the library is awake. Thread-safe; no locks, no
// system calls and no memory but the thread's own for a call that the coin doesn't choose.
namespace gpusonde::inject {

// CUPTI's callback for all domains; `user` is the Cupti.
void OnCallback(void* user, uint32_t domain, uint32_t callback_id, const void* data);

// Subscribes to the calls and events that OnCallback knows. Callbacks that this CUPTI doesn't know are passed
// over.
void EnableCallbacks(const Cupti& cupti, gpusonde_cupti_subscriber_handle subscriber);

// What calls belong to from now on; 0: to nothing, and OnCallback does nothing.
void SetCallSession(uint32_t session);
uint32_t CallSession();

// How long kernels ran since this was last said, by the hashes of their names: the coin of the next second
// goes by it. AddTime in between; by one thread at a time.
void BeginTimes();
void AddTime(uint64_t name_hash, uint64_t time_ns);
void EndTimes();

// A second has begun: each thread fixes the coin's probability anew by what it did in the last one.
void NextSecond();

// Chosen calls since the process began, and the time spent on them.
struct CallProgress {
  uint64_t calls;
  uint64_t cost_ns;
};
CallProgress GetCallProgress();

// CUPTI has told of an error after which it is gone, or that another's subscription failed; asking forgets
// it.
bool TakeCuptiGone();
bool TakeRivalSeen();

}  // namespace gpusonde::inject
