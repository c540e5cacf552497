// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simgpu/cuda/driver.h"

namespace simgpu::cuda {

Graph& MakeGraph();

// Adds clones of all nodes of `original`, with new ids, and notifies the listener of each. `exec` is the
// executable graph that they are cloned for; null when it is another graph.
void CloneInto(Graph& clone, const Graph& original, void* exec);

GraphExec& Instantiate(const Graph& graph);

// Appends all nodes of an executable graph to a stream. Blocks while the device's queue is full.
void Run(const GraphExec& exec, Stream& stream);

}  // namespace simgpu::cuda
