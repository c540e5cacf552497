// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/records.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <utility>

#include "sources/cupti/names.h"
#include "wire/nvidia/cupti.h"

namespace gpusonde::cupti {
namespace {

std::string_view Text(const char* text, size_t room) { return {text, ::strnlen(text, room)}; }

bool FitsInt64(uint64_t value) { return std::in_range<int64_t>(value); }

bool SetTimes(Activity& activity, uint64_t start_ns, uint64_t end_ns) {
  if (!FitsInt64(start_ns) || !FitsInt64(end_ns)) return false;
  if (start_ns == 0 || end_ns < start_ns) return true;  // CUPTI has no times: both stay 0
  activity.start_ns = static_cast<int64_t>(start_ns);
  activity.end_ns = static_cast<int64_t>(end_ns);
  return true;
}

// Sets the common fields of kernels, copies, sets and synchronisations.
template <class Wire>
bool SetActivity(Activity& activity, const Wire& wire) {
  activity.correlation = wire.correlation;
  activity.device = wire.device;
  activity.context = wire.context;
  activity.stream = wire.stream;
  if constexpr (requires { wire.graph_node; }) activity.graph_node = wire.graph_node;
  return SetTimes(activity, wire.start_ns, wire.end_ns);
}

std::optional<double> Probability(uint32_t units) {
  if (units == 0 || units > GPUSONDE_GPU_CERTAIN) return std::nullopt;
  return static_cast<double>(units) / GPUSONDE_GPU_CERTAIN;
}

}  // namespace

std::optional<SessionBegin> Read(const gpusonde_gpu_session_begin& wire) {
  if (!FitsInt64(wire.begin_ns)) return std::nullopt;
  return SessionBegin{.begin_ns = static_cast<int64_t>(wire.begin_ns), .cupti_version = wire.cupti_version};
}

std::optional<SessionBegin> Read(const gpusonde_gpu_snapshot_begin& wire) {
  const uint64_t begin_ns = std::max(wire.begin_ns, wire.since_ns);
  if (!FitsInt64(begin_ns)) return std::nullopt;
  return SessionBegin{.begin_ns = static_cast<int64_t>(begin_ns),
                      .cupti_version = wire.cupti_version,
                      .joined = wire.since_ns > wire.begin_ns};
}

std::optional<SessionEnd> Read(const gpusonde_gpu_session_end& wire) {
  static constexpr EndReason kReasons[] = {EndReason::kUnknown, EndReason::kNoConsumer, EndReason::kGovernor,
                                           EndReason::kForeign, EndReason::kExit,       EndReason::kCupti};
  if (!FitsInt64(wire.end_ns)) return std::nullopt;
  return SessionEnd{
      .end_ns = static_cast<int64_t>(wire.end_ns),
      .reason = wire.reason < std::size(kReasons) ? kReasons[wire.reason] : EndReason::kUnknown};
}

std::optional<Overhead> Read(const gpusonde_gpu_overhead& wire) {
  // No program's steps take more than a hundred times as long by being profiled.
  constexpr int32_t kMaxPpm = 100'000'000;
  const auto absurd = [](int32_t ppm) { return ppm < -kMaxPpm || ppm > kMaxPpm; };
  if (!FitsInt64(wire.time_ns) || wire.budget > kMaxPpm || wire.spent > kMaxPpm || wire.measured > kMaxPpm ||
      absurd(wire.cost) || absurd(wire.cost_low) || absurd(wire.cost_high) || wire.cost_low > wire.cost ||
      wire.cost > wire.cost_high)
    return std::nullopt;
  return Overhead{.time_ns = static_cast<int64_t>(wire.time_ns),
                  .pairs = wire.pairs,
                  .budget = wire.budget / GPUSONDE_GPU_PPM,
                  .spent = wire.spent / GPUSONDE_GPU_PPM,
                  .measured = wire.measured / GPUSONDE_GPU_PPM,
                  .known = wire.known != 0,
                  .cost = wire.cost / GPUSONDE_GPU_PPM,
                  .cost_low = wire.cost_low / GPUSONDE_GPU_PPM,
                  .cost_high = wire.cost_high / GPUSONDE_GPU_PPM};
}

std::optional<Device> Read(const gpusonde_gpu_device& wire) {
  if (!FitsInt64(wire.memory_bytes)) return std::nullopt;
  Device device{.ordinal = wire.ordinal,
                .uuid = {},
                .name = Text(wire.name, sizeof wire.name),
                .pci_bus = Text(wire.pci_bus, sizeof wire.pci_bus),
                .memory_bytes = static_cast<int64_t>(wire.memory_bytes),
                .sm_count = static_cast<int32_t>(wire.sm_count)};
  std::copy(std::begin(wire.uuid), std::end(wire.uuid), device.uuid.begin());
  return device;
}

// Thousands of these come each second: with a single return it is filled in where the caller wants it.
std::optional<Kernel> Read(const gpusonde_gpu_kernel& wire) {
  std::optional<Kernel> kernel(std::in_place);
  kernel->grid_x = wire.grid_x;
  kernel->grid_y = wire.grid_y;
  kernel->grid_z = wire.grid_z;
  kernel->block_x = wire.block_x;
  kernel->block_y = wire.block_y;
  kernel->block_z = wire.block_z;
  kernel->registers = wire.registers;
  kernel->static_shared_bytes = wire.static_shared_bytes;
  kernel->dynamic_shared_bytes = wire.dynamic_shared_bytes;
  kernel->graph = wire.graph;
  if (!SetActivity(*kernel, wire)) kernel.reset();
  return kernel;
}

std::optional<Memcpy> Read(const gpusonde_gpu_memcpy& wire) {
  Memcpy copy;
  if (!SetActivity(copy, wire) || !FitsInt64(wire.bytes)) return std::nullopt;
  copy.bytes = wire.bytes;
  copy.kind = CopyKindName(wire.copy_kind);
  copy.source_memory = MemoryKindName(wire.source_kind);
  copy.target_memory = MemoryKindName(wire.target_kind);
  copy.asynchronous = wire.asynchronous != 0;
  return copy;
}

std::optional<Memset> Read(const gpusonde_gpu_memset& wire) {
  Memset set;
  if (!SetActivity(set, wire) || !FitsInt64(wire.bytes)) return std::nullopt;
  set.bytes = wire.bytes;
  return set;
}

std::optional<Sync> Read(const gpusonde_gpu_sync& wire) {
  Sync sync;
  if (!SetActivity(sync, wire)) return std::nullopt;
  sync.kind = SyncKindName(wire.kind);
  return sync;
}

std::optional<Total> Read(const gpusonde_gpu_total& wire) {
  Total total;
  switch (wire.of) {
    case GPUSONDE_GPU_KERNEL:
      total.of = Total::Of::kKernel;
      break;
    case GPUSONDE_GPU_MEMCPY:
      total.of = Total::Of::kMemcpy;
      total.name = CopyKindName(wire.key);
      break;
    case GPUSONDE_GPU_MEMSET:
      total.of = Total::Of::kMemset;
      break;
    case GPUSONDE_GPU_SYNC:
      total.of = Total::Of::kSync;
      total.name = SyncKindName(wire.key);
      break;
    default:
      return std::nullopt;
  }
  if (wire.untimed > wire.count || !FitsInt64(wire.count) || !FitsInt64(wire.total_ns) ||
      !FitsInt64(wire.bytes))
    return std::nullopt;
  total.device = wire.device;
  total.count = wire.count;
  total.untimed = wire.untimed;
  total.total_ns = wire.total_ns;
  total.bytes = wire.bytes;
  return total;
}

std::optional<Call> Read(const gpusonde_gpu_call& wire) {
  const std::optional<double> probability = Probability(wire.probability);
  if (!probability || !FitsInt64(wire.end_ns) || wire.end_ns < wire.start_ns) return std::nullopt;
  if (wire.domain != GPUSONDE_CUPTI_DOMAIN_RUNTIME && wire.domain != GPUSONDE_CUPTI_DOMAIN_DRIVER)
    return std::nullopt;
  const bool runtime = wire.domain == GPUSONDE_CUPTI_DOMAIN_RUNTIME;
  return Call{.correlation = wire.correlation,
              .start_ns = static_cast<int64_t>(wire.start_ns),
              .end_ns = static_cast<int64_t>(wire.end_ns),
              .probability = *probability,
              .domain = runtime ? "cuda_runtime" : "cuda_driver",
              .name = CallName(runtime, wire.callback_id),
              .result = wire.result};
}

std::optional<GraphNode> Read(const gpusonde_gpu_graph_node& wire) {
  const std::optional<double> probability = Probability(wire.probability);
  if (!probability || !FitsInt64(wire.created_ns)) return std::nullopt;
  return GraphNode{.node = wire.node,
                   .original_node = wire.original_node,
                   .graph = wire.graph,
                   .created_ns = static_cast<int64_t>(wire.created_ns),
                   .probability = *probability};
}

std::optional<Foreign> Read(const gpusonde_gpu_foreign& wire) {
  if (!FitsInt64(wire.until_ns)) return std::nullopt;
  return Foreign{.until_ns = static_cast<int64_t>(wire.until_ns),
                 .holder = Text(wire.holder, sizeof wire.holder)};
}

std::optional<Communicator> Read(const gpusonde_gpu_communicator& wire) {
  if (wire.rank < 0 || wire.ranks < 0 || wire.nodes < 0 || !FitsInt64(wire.joined_ns) ||
      !FitsInt64(wire.left_ns) || !FitsInt64(wire.dropped) || wire.plugin_version > INT16_MAX)
    return std::nullopt;
  return Communicator{.communicator = wire.communicator,
                      .rank = wire.rank,
                      .ranks = wire.ranks,
                      .nodes = wire.nodes,
                      .joined_ns = static_cast<int64_t>(wire.joined_ns),
                      .left_ns = static_cast<int64_t>(wire.left_ns),
                      .dropped = static_cast<int64_t>(wire.dropped),
                      .plugin_version = static_cast<int32_t>(wire.plugin_version),
                      .name = Text(wire.name, sizeof wire.name)};
}

std::optional<Collective> Read(const gpusonde_gpu_collective& wire) {
  for (const uint64_t value :
       {wire.sequence, wire.count, wire.called_ns, wire.enqueued_ns, wire.begin_ns, wire.end_ns, wire.gpu_ns})
    if (!FitsInt64(value)) return std::nullopt;
  if (wire.rank < 0 || wire.called_ns == 0 || wire.channels > INT16_MAX ||
      (wire.end_ns != 0 && wire.end_ns < wire.begin_ns))
    return std::nullopt;
  return Collective{.communicator = wire.communicator,
                    .rank = wire.rank,
                    .root = wire.root,
                    .sequence = static_cast<int64_t>(wire.sequence),
                    .count = static_cast<int64_t>(wire.count),
                    .called_ns = static_cast<int64_t>(wire.called_ns),
                    .enqueued_ns = static_cast<int64_t>(wire.enqueued_ns),
                    .begin_ns = static_cast<int64_t>(wire.begin_ns),
                    .end_ns = static_cast<int64_t>(wire.end_ns),
                    .gpu_ns = static_cast<int64_t>(wire.gpu_ns),
                    .channels = static_cast<int32_t>(wire.channels),
                    .operation = Text(wire.operation, sizeof wire.operation),
                    .datatype = Text(wire.datatype, sizeof wire.datatype),
                    .algorithm = Text(wire.algorithm, sizeof wire.algorithm),
                    .protocol = Text(wire.protocol, sizeof wire.protocol)};
}

std::optional<Range> Read(const gpusonde_gpu_range& wire, std::string_view texts) {
  if (size_t{wire.text_length} + wire.domain_length > texts.size() || !FitsInt64(wire.end_ns) ||
      (wire.end_ns != 0 && wire.end_ns < wire.start_ns) || !FitsInt64(wire.start_ns) ||
      RangeKindName(wire.kind).empty())
    return std::nullopt;
  return Range{.start_ns = static_cast<int64_t>(wire.start_ns),
               .end_ns = static_cast<int64_t>(wire.end_ns),
               .kind = RangeKindName(wire.kind),
               .domain = texts.substr(wire.text_length, wire.domain_length),
               .text = texts.substr(0, wire.text_length)};
}

}  // namespace gpusonde::cupti
