// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "inject/names.h"

// The names of kernels by the launches' callbacks, kept from the first time that the program unloads a
// module. From then on the names in CUPTI's records can't be trusted: it keeps one for a function's address,
// and gives it to the function that is loaded there next (CUDA 13.0, docs/gpu-results.md). Thread-safe.
namespace gpusonde::inject {

// A module is about to be unloaded, or may have been. Makes no call and takes no lock, as the program's
// thread is within the driver: cuptiActivityFlushAll waits there for a thread of CUPTI's that waits for the
// driver (CUDA 13.0, docs/gpu-results.md).
void NoteUnload();

inline uint32_t g_unloads = 0;  // atomic
// How many were noted since the process began. Inline, as every launch asks.
inline uint32_t Unloads() { return __atomic_load_n(&g_unloads, __ATOMIC_ACQUIRE); }

// The program launches the kernel of this name, which is copied.
void NoteLaunch(uint32_t correlation, const char* name);

// Interns the name of that launch. Nullopt if it wasn't noted, or so long ago that its place was taken.
std::optional<uint32_t> InternLaunch(uint32_t correlation, Names& names, uint32_t session, Batch& out);

}  // namespace gpusonde::inject
