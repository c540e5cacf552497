// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "simgpu/cuda/objects.h"
#include "simgpu/cuda/tools.h"
#include "simgpu/machine/machine.h"

namespace simgpu::cuda {

using Result = int32_t;  // CUresult

// The driver's state in one process. A single lock guards it: calls are short, and waiting calls don't hold
// it.
struct Driver {
  std::mutex mutex;
  std::atomic<bool> initialised = false;
  std::atomic<bool> forked = false;  // CUDA doesn't work in the child of a process that used it
  Machine* machine = nullptr;

  std::vector<std::unique_ptr<Context>> contexts;
  std::vector<Context*> primary;                                 // by device; null until retained
  std::map<uint64_t, std::pair<uint32_t, int64_t>> allocations;  // address → device, bytes
  std::map<uintptr_t, size_t> pinned;                            // host ranges
  std::vector<std::unique_ptr<Graph>> graphs;
  uint64_t next_address = 0;
  uint32_t next_context = 1;
  uint32_t next_stream = 13;  // CUPTI's id of the first stream that a program creates
  uint32_t next_event = 1;
  uint32_t next_graph = 1;
  uint64_t next_capture = 1;
  uint32_t modules = 0;                      // loaded
  std::set<std::string, std::less<>> names;  // of all functions that were ever loaded
  uint32_t next_module = 1;
  int64_t default_kernel_ns = 0;
};

Driver& TheDriver();

// The context current to this thread; null when there is none.
Context* CurrentContext();

// The stream for a handle in the current context; null for an invalid handle.
Stream* StreamOf(void* handle);

// Appends one operation to a stream and notifies the tool; blocks while the device's queue is full. It
// starts no earlier than `ready_ns` (0: no bound). Returns its end time.
struct GraphPlace {
  uint32_t graph_id = 0;
  uint64_t node_id = 0;
  int64_t grid_id = 0;  // of a kernel
  bool silent = false;  // part of a graph that is reported as a whole
};
struct Placed {
  int64_t start_ns;
  int64_t end_ns;
};
Placed SubmitLaunch(Stream& stream, const Launch& launch, int64_t ready_ns, const GraphPlace& graph);
Placed SubmitTransfer(Stream& stream, const Transfer& transfer, int64_t ready_ns, const GraphPlace& graph);
Placed SubmitFill(Stream& stream, const Fill& fill, int64_t ready_ns, const GraphPlace& graph);

// When an operation appended to the stream now may start; marks the stream as busy until end_ns.
int64_t ReadyNs(const Stream& stream);
void Occupy(Stream& stream, int64_t end_ns);
// When all of a context's streams are done.
int64_t TailNs(const Context& context);

// Returns at end_ns, without busy waiting.
void WaitUntil(int64_t end_ns);
// Waits, and reports it to the tool as a synchronisation.
void Synchronize(Context& context, Stream* stream, uint32_t sync_kind, uint32_t event_id, int64_t end_ns);

// Adds a node to the graph that `stream` is being captured into.
Node& CaptureNode(Stream& stream, uint32_t type);
Node& AddNode(Graph& graph, uint32_t type, std::vector<Node*> dependencies);

// The kind of a copy between two addresses; the caller sets bytes and async.
Transfer Classify(uint64_t target, uint64_t source);

// The driver's log of operations, if SIMGPU_LOG names a file.
void Log(const Operation& operation);

}  // namespace simgpu::cuda
