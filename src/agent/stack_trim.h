// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "agent/process_table.h"
#include "model/drops.h"
#include "wire/stack.h"

namespace gpusonde::agent {

// Counts a stack of this process that doesn't reach the thread's start or lacks its Python frames, by reason.
// The eBPF program counts stacks cut at the frame limit, and the interner addresses outside all code.
void CountEnds(const Process& process, const gpusonde_stack_counts& counts, model::DropCounts& drops);

// Removes the frames of CUPTI and of our injected library from the top of a call's stack: they exist only
// because of profiling.
void HideObservers(const Process& process, gpusonde_stack_counts& counts, std::span<uint64_t>& frames);

}  // namespace gpusonde::agent
