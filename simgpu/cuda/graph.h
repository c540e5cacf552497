// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simgpu/cuda/driver.h"

namespace simgpu::cuda {

Graph& MakeGraph();

// Adds clones of all nodes of `original`, with ids of their own, and tells of each. `exec` is what they are
// made for; null when it is another graph.
void CloneInto(Graph& clone, const Graph& original, void* exec);

GraphExec& Instantiate(const Graph& graph);

// Puts all nodes of an executable graph on a stream. Blocks while the device's queue is full.
void Run(const GraphExec& exec, Stream& stream);

}  // namespace simgpu::cuda
