// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "server/frame_functions.h"

namespace gpusonde::server {

// Internal functions explain nothing to a user: those of Python's interpreter, of the CUDA libraries and
// gpusonde below a program's CUDA call, of starting a process, a thread or an import, and of Go's way to
// them. The UI (key F) and the MCP server fold their frames into their callers. Python functions are internal
// only if they start others; of Go's runtime, memory management and the scheduler are not: they explain
// something.

// Whether a function is internal wherever it is called from. `binary` is the name of its file, empty without
// one.
bool IsInternal(const FrameFunctions::Function& function, std::string_view binary);

// Marks the internal functions, by index into `functions`. Nodes of the tree are in pre-order and name
// functions by the same index, -1 and numbers beyond its end for none; parents come first, the root's is -1.
//
// Besides IsInternal(): a stripped C library has no name for main()'s caller, so that a frame of it without a
// symbol is internal if every node of it is directly below a function that starts processes or threads.
std::vector<bool> InternalFunctions(const FrameFunctions& functions, std::span<const int32_t> node_function,
                                    std::span<const int32_t> node_parent);

}  // namespace gpusonde::server
