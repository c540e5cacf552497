// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "agent/process_table.h"
#include "model/drops.h"
#include "wire/stack.h"

namespace gpusonde::agent {

// Counts a stack of this process that doesn't reach the thread's start, or lacks its Python frames, by
// reason. Those cut at their limit the kernel's program counts, and an address outside all code the interner.
void CountEnds(const Process& process, const gpusonde_stack_counts& counts, model::DropCounts& drops);

// Takes the frames of CUPTI and of our own library off the top of a call's stack: they are there because
// somebody looks.
void HideObservers(const Process& process, gpusonde_stack_counts& counts, std::span<uint64_t>& frames);

}  // namespace gpusonde::agent
