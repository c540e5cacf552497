// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simgpu/cuda/driver.h"

namespace simgpu::cuda {

Graph& MakeGraph();

// Adds clones of all nodes of `original`, with new ids, and notifies the tool of each, first as created,
// then as cloned.
void CloneInto(Graph& clone, const Graph& original);

GraphExec& Instantiate(Graph& graph);

// Appends all nodes of an executable graph to a stream. Blocks while the device's queue is full.
void Run(const GraphExec& exec, Stream& stream);

}  // namespace simgpu::cuda
