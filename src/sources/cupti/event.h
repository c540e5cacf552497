// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <variant>

#include "sources/ebpf/raw_stack.h"

// What a process with libgpusonde-inject.so in it tells about its GPU work, decoded and checked. Texts and
// spans are valid during the visit only. Times are ns of CLOCK_MONOTONIC; where CUPTI could not tell them,
// both are 0.
namespace gpusonde::cupti {

// An awake period of the library begins: from here on everything is reported. Time outside sessions is
// unobserved.
struct SessionBegin {
  int64_t begin_ns = 0;
  uint32_t cupti_version = 0;
  bool joined = false;  // it had begun earlier: begin_ns is since when it is observed here
};

enum class EndReason : uint8_t { kUnheard, kGovernor, kForeign, kExit, kCupti, kUnknown };

struct SessionEnd {
  int64_t end_ns = 0;
  EndReason reason = EndReason::kUnknown;
};

// A device as the process counts them; reported before the session's first record that refers to it, maybe
// again.
struct Device {
  uint32_t ordinal = 0;
  std::array<uint8_t, 16> uuid{};  // all zero when the driver would not say
  std::string_view name;           // empty likewise
  std::string_view pci_bus;
  int64_t memory_bytes = 0;  // 0 likewise
  int32_t sm_count = 0;
};

// What any activity has: where it ran, and the call (`correlation`, unique within session and 60 s) that
// asked for it.
struct Activity {
  uint32_t correlation = 0;
  uint32_t device = 0;  // ordinal; kNoDevice when not known
  uint32_t context = 0;
  uint32_t stream = 0;  // kNoStream when none is meant
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t graph_node = 0;  // 0 outside graphs
};
inline constexpr uint32_t kNoDevice = 0xffffffff;
inline constexpr uint32_t kNoStream = 0xffffffff;

struct Kernel : Activity {
  std::string_view name;  // mangled; empty when its name was lost or not kept (both counted)
  uint32_t grid_x = 0, grid_y = 0, grid_z = 0;
  uint16_t block_x = 0, block_y = 0, block_z = 0;
  uint16_t registers = 0;
  uint32_t static_shared_bytes = 0;
  uint32_t dynamic_shared_bytes = 0;
  uint32_t graph = 0;
};

struct Memcpy : Activity {
  uint64_t bytes = 0;
  std::string_view kind;           // htod, dtoh, dtod, ptop, htoh or unknown, as the table `memcpys` wants it
  std::string_view source_memory;  // pageable, pinned, device, managed or unknown
  std::string_view target_memory;
  bool asynchronous = false;
};

struct Memset : Activity {
  uint64_t bytes = 0;
};

struct Sync : Activity {
  std::string_view kind;  // event, stream_wait, stream, context or unknown
};

// A sum since the session began, exact whatever became of the single records. The newest of one (of, device,
// name or kind) stands for all before.
struct Total {
  enum class Of : uint8_t { kKernel, kMemcpy, kMemset, kSync } of = Of::kKernel;
  uint32_t device = 0;
  std::string_view name;  // the kernel's name, or the kind of copy or sync; empty for sets and names not kept
  uint64_t count = 0;
  uint64_t untimed = 0;  // of `count`, those that CUPTI gave no times for; not in total_ns
  uint64_t total_ns = 0;
  uint64_t bytes = 0;
  bool joined = false;  // as it was when we joined the session: none of these records were reported here
};

// A call that put work on a device, chosen by an independent coin with this probability.
struct Call {
  uint32_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  double probability = 1;   // in (0, 1]
  std::string_view domain;  // cuda_runtime or cuda_driver
  std::string_view name;    // "cudaLaunchKernel"; empty for one newer than we are
  int32_t result = 0;
};

// A node of a CUDA graph was made or, with its graph, cloned. Kernels name the node of the graph that ran;
// follow original_node to the one that was captured, which has the stack.
struct GraphNode {
  uint64_t node = 0;
  uint64_t original_node = 0;  // 0: made, not cloned
  uint32_t graph = 0;
  int64_t created_ns = 0;
  double probability = 1;  // with which a made node's stack is taken
};

struct Range {
  int64_t start_ns = 0;
  int64_t end_ns = 0;     // 0: still open when its session ended
  std::string_view kind;  // nvtx_push_pop or nvtx_start_end, as the table `ranges` wants it
  std::string_view domain;
  std::string_view text;
};

// Another tool holds CUPTI in this process; nothing will be told before `until_ns`.
struct Foreign {
  int64_t until_ns = 0;
  std::string_view holder;  // empty when CUPTI doesn't say
};

struct Event {
  int32_t pid = 0;  // as our own pid namespace numbers it
  // The thread that the event is about, for Call, GraphNode and Range; 0 for the others. From the kernel
  // program as our own pid namespace numbers it, for Call and GraphNode; else as the process itself does.
  int32_t tid = 0;
  uint32_t session = 0;  // of the process, from 1; 0 while asleep
  // The stack of `tid`, for Call and GraphNode. stack_taken is false where there was none to take (through a
  // socket) or it could not be read.
  ebpf::RawStack stack;
  bool stack_taken = false;
  std::variant<SessionBegin, SessionEnd, Device, Kernel, Memcpy, Memset, Sync, Total, Call, GraphNode, Range,
               Foreign>
      what;
};

}  // namespace gpusonde::cupti
