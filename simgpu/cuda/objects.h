// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "simgpu/cuda/ptx.h"

namespace simgpu::cuda {

// The objects behind CUDA's handles. Each begins with its kind, so that invalid handles are detected. Guarded
// by Driver::mutex, except for what never changes.
enum class Kind : uint32_t {
  kContext = 0x43545831,
  kStream,
  kEvent,
  kModule,
  kFunction,
  kLibrary,
  kGraph,
  kNode,
  kGraphExec,
};

struct Object {
  explicit Object(Kind which) : kind(which) {}
  Kind kind;
};

// Null when `handle` is not an object of that kind.
template <class T>
T* As(void* handle) {
  auto* object = static_cast<Object*>(handle);
  return object != nullptr && object->kind == T::kKind ? static_cast<T*>(object) : nullptr;
}

struct Capture;
struct Context;
struct Module;
struct Node;

struct Stream : Object {
  static constexpr Kind kKind = Kind::kStream;
  Stream(Context& owner, uint32_t number, bool waits)
      : Object(kKind), context(owner), id(number), blocking(waits) {}
  Context& context;
  uint32_t id;
  bool blocking;        // synchronises with the legacy stream
  int64_t tail_ns = 0;  // when all its operations are done
  Capture* capture = nullptr;
  std::vector<Node*> last_captured;  // what the next captured node depends on
};

struct Event : Object {
  static constexpr Kind kKind = Kind::kEvent;
  explicit Event(uint32_t number) : Object(kKind), id(number) {}
  uint32_t id;
  bool recorded = false;
  uint32_t stream_id = 0;
  int64_t time_ns = 0;
  Capture* capture = nullptr;  // recorded during a capture: these nodes instead of a time
  std::vector<Node*> nodes;
};

struct Function : Object {
  static constexpr Kind kKind = Kind::kFunction;
  Function(Module* owner, const char* mangled, const KernelTiming& how_long)
      : Object(kKind), module(owner), name(mangled), timing(how_long) {}
  Module* module;
  const char* name;  // in Driver::names
  KernelTiming timing;
};

struct Module : Object {
  static constexpr Kind kKind = Kind::kModule;
  Module() : Object(kKind) {}
  uint32_t id = 0;
  bool opaque = false;  // not PTX: its functions are not known, so every name is assumed to exist
  std::map<std::string, std::unique_ptr<Function>, std::less<>> functions;
};

struct Context : Object {
  static constexpr Kind kKind = Kind::kContext;
  Context(uint32_t number, uint32_t ordinal, uint32_t process_slot)
      : Object(kKind), id(number), device(ordinal), slot(process_slot), legacy(*this, 7, true) {}
  uint32_t id;
  uint32_t device;
  uint32_t slot;  // of this process on the device
  uint32_t primary_uses = 0;
  int64_t kernels = 0;  // numbered so far: launched, or nodes of executable graphs
  Stream legacy;        // the null stream; CUPTI numbers it 7
  std::vector<std::unique_ptr<Stream>> streams;
};

// A kernel launch with its arguments: all that is known before it runs.
struct Launch {
  Function* function = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t shared_bytes = 0;
  int64_t duration_ns = 0;
};

struct Transfer {
  uint8_t copy_kind = 0;    // CUpti_ActivityMemcpyKind
  uint8_t source_kind = 0;  // CUpti_ActivityMemoryKind
  uint8_t target_kind = 0;
  int64_t bytes = 0;
  bool async = false;
};

struct Fill {
  uint32_t value = 0;
  int64_t bytes = 0;
  bool async = false;
};

struct Graph;

struct Node : Object {
  static constexpr Kind kKind = Kind::kNode;
  Node(Graph* owner, uint64_t number, uint32_t what) : Object(kKind), graph(owner), id(number), type(what) {}
  Graph* graph;
  uint64_t id;
  uint32_t type;        // CUgraphNodeType
  int64_t grid_id = 0;  // of a kernel of an executable graph: the same in every launch
  std::vector<Node*> dependencies;
  Launch launch;
  Transfer transfer;
  Fill fill;
};

struct Graph : Object {
  static constexpr Kind kKind = Kind::kGraph;
  explicit Graph(uint32_t number) : Object(kKind), id(number) {}
  uint32_t id;
  std::vector<std::unique_ptr<Node>> nodes;  // a node comes after those it depends on
};

struct GraphExec : Object {
  static constexpr Kind kKind = Kind::kGraphExec;
  GraphExec(uint32_t number, bool whole) : Object(kKind), id(number), graph(number), traced_whole(whole) {}
  uint32_t id;
  Graph graph;  // a clone
  std::unique_ptr<Node>
      internal;       // the driver adds a node of its own, reported as created, which runs nothing
  bool traced_whole;  // CUPTI's GRAPH_TRACE was enabled when it was instantiated
};

// One capture, begun on one stream, which others may join through events.
struct Capture {
  Stream* origin;
  Graph* graph;
  uint64_t id;
  std::vector<Stream*> streams;
};

}  // namespace simgpu::cuda
