// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "sources/ebpf/raw_stack.h"

// The GPU work that libgpusonde-inject.so reports from a process, decoded and validated. Texts and spans are
// valid during the visit only. Times are ns of CLOCK_MONOTONIC; if CUPTI has no times for an activity, both
// are 0.
namespace gpusonde::cupti {

// A session is an awake period of the library, in which all activity is reported. Time outside sessions is
// not observed.
struct SessionBegin {
  int64_t begin_ns = 0;
  uint32_t cupti_version = 0;
  bool joined = false;  // the session began earlier: begin_ns is when we began to observe it
};

enum class EndReason : uint8_t { kNoConsumer, kGovernor, kForeign, kExit, kCupti, kUnknown };

struct SessionEnd {
  int64_t end_ns = 0;
  EndReason reason = EndReason::kUnknown;
};

// A device, by the ordinal that the process uses; reported before the session's first record that refers to
// it, possibly more than once.
struct Device {
  uint32_t ordinal = 0;
  std::array<uint8_t, 16> uuid{};  // all zero, like an empty name or 0 bytes: the driver doesn't report it
  std::string_view name;
  std::string_view pci_bus;
  int64_t memory_bytes = 0;
  int32_t sm_count = 0;
};

// Fields of every activity: where and when it ran, and the call that submitted it (`correlation`, unique
// within a session and 60 s).
struct Activity {
  uint32_t correlation = 0;
  uint32_t device = 0;  // ordinal; GPUSONDE_GPU_NO_DEVICE when not known
  uint32_t context = 0;
  uint32_t stream = 0;  // kNoStream when it refers to no stream
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  uint64_t graph_node = 0;  // 0 outside graphs
};
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
  std::string_view kind;           // htod, dtoh, dtod, ptop, htoh or unknown, as in the table `memcpys`
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

// A sum since the session began, exact even if single records were dropped. A newer total of the same (of,
// device, name or kind) replaces the earlier ones.
struct Total {
  enum class Of : uint8_t { kKernel, kMemcpy, kMemset, kSync } of = Of::kKernel;
  uint32_t device = 0;
  std::string_view name;  // the kernel's name, or the kind of copy or sync; empty for sets and names not kept
  uint64_t count = 0;
  uint64_t untimed = 0;  // how many of `count` have no times and are not in total_ns
  uint64_t total_ns = 0;
  uint64_t bytes = 0;
  bool joined = false;  // the value when we joined the session: its records were not reported to us
};

// A call that submitted work to a device, sampled independently with this probability.
struct Call {
  uint32_t correlation = 0;
  int64_t start_ns = 0;
  int64_t end_ns = 0;
  double probability = 1;   // in (0, 1]
  std::string_view domain;  // cuda_runtime or cuda_driver
  std::string_view name;    // "cudaLaunchKernel"; empty for a call that this build doesn't know
  int32_t result = 0;
};

// A node of a CUDA graph was created, or cloned with its graph. Kernels refer to the node of the executed
// graph; follow original_node to the node that was captured, which has the stack.
struct GraphNode {
  uint64_t node = 0;
  uint64_t original_node = 0;  // 0: created, not cloned
  uint32_t graph = 0;
  int64_t created_ns = 0;
  double probability = 1;  // with which a created node's stack is taken
};

struct Range {
  int64_t start_ns = 0;
  int64_t end_ns = 0;     // 0: still open when its session ended
  std::string_view kind;  // nvtx_push_pop or nvtx_start_end, as in the table `ranges`
  std::string_view domain;
  std::string_view text;
};

// A rank of the process in a NCCL communicator; reported again from time to time.
struct Communicator {
  uint64_t communicator = 0;  // NCCL's hash
  int32_t rank = 0;
  int32_t ranks = 0;  // 0: not known, like nodes
  int32_t nodes = 0;
  int64_t joined_ns = 0;
  int64_t left_ns = 0;  // 0: not yet
  int64_t dropped = 0;  // collectives that were not kept
  int32_t plugin_version = 0;
  std::string_view name;
};

// A collective that has ended on this rank, or lasts long: `end_ns` is 0 then, and it is reported again.
// Other times are 0 where not known.
struct Collective {
  uint64_t communicator = 0;
  int32_t rank = 0;
  int32_t root = 0;
  int64_t sequence = 0;  // of this operation in this communicator
  int64_t count = 0;
  int64_t called_ns = 0, enqueued_ns = 0, begin_ns = 0, end_ns = 0;
  int64_t gpu_ns = 0;
  int32_t channels = 0;
  std::string_view operation, datatype, algorithm, protocol;
};

// Another tool is subscribed to CUPTI in this process; nothing is reported before `until_ns`.
struct Foreign {
  int64_t until_ns = 0;
  std::string_view holder;  // empty when CUPTI doesn't say
};

// The profiling overhead of the process, in shares of its time (wire/gpu_event.h, gpusonde_gpu_overhead).
struct Overhead {
  int64_t time_ns = 0;
  uint32_t pairs = 0;
  double budget = 0;
  double spent = 0;
  double measured = 0;
  bool known = false;  // the three that follow
  double cost = 0, cost_low = 0, cost_high = 0;
};

struct Event {
  int32_t pid = 0;  // in our pid namespace
  // The thread of a Call, GraphNode, Range or Collective; 0 for other events. In our pid namespace if it
  // comes from the BPF program (Call and GraphNode), else in the process's own.
  int32_t tid = 0;
  uint32_t session = 0;  // of the process, from 1; 0 while asleep
  // The stack of `tid`, for Call and GraphNode. stack_taken is false if the event came through a socket, or
  // the stack could not be read.
  ebpf::RawStack stack;
  bool stack_taken = false;
  std::variant<SessionBegin, SessionEnd, Device, Kernel, Memcpy, Memset, Sync, Total, Call, GraphNode, Range,
               Foreign, Communicator, Collective, Overhead>
      what;

  // When a Call ended or a GraphNode was created, by the program's own word; nullopt for other events.
  std::optional<int64_t> stack_ns() const {
    if (const auto* call = std::get_if<Call>(&what); call != nullptr) return call->end_ns;
    if (const auto* node = std::get_if<GraphNode>(&what); node != nullptr) return node->created_ns;
    return std::nullopt;
  }
};

}  // namespace gpusonde::cupti
