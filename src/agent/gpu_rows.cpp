// SPDX-License-Identifier: Apache-2.0
#include "agent/gpu_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <variant>

#include "base/log.h"
#include "base/time.h"
#include "base/utf8.h"
#include "model/metric_catalogue.h"

namespace gpusonde::agent {
namespace {

using cupti::Total;

std::string_view NameOf(cupti::EndReason reason) {
  switch (reason) {
    case cupti::EndReason::kNoConsumer:
      return "unheard";
    case cupti::EndReason::kGovernor:
      return "governor";
    case cupti::EndReason::kForeign:
      return "foreign";
    case cupti::EndReason::kExit:
      return "exit";
    case cupti::EndReason::kCupti:
      return "cupti";
    case cupti::EndReason::kUnknown:
      break;
  }
  return "unknown";
}

// In the driver's format: GPU-8-4-4-4-12.
std::string FormatUuid(const std::array<uint8_t, 16>& uuid) {
  std::string text = "GPU-";
  for (size_t i = 0; i < uuid.size(); ++i)
    text += fmt::format("{}{:02x}", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
  return text;
}

int64_t StreamOf(uint32_t stream) { return stream == cupti::kNoStream ? -1 : int64_t{stream}; }

template <class T>
std::optional<int64_t> NodeOf(const T& activity) {
  return activity.graph_node == 0 ? std::nullopt : std::optional(static_cast<int64_t>(activity.graph_node));
}

// Correlation ids grow and wrap around.
bool IsLater(uint32_t correlation, uint32_t than) { return static_cast<int32_t>(correlation - than) > 0; }

std::string CommunicatorId(uint64_t hash) { return fmt::format("{:016x}", hash); }

std::optional<int32_t> KnownCount(int32_t count) { return count == 0 ? std::nullopt : std::optional(count); }

// ncclDatatypeToString: ncclInt8, ncclBfloat16, ncclFloat8e4m3.
std::optional<int64_t> ElementBytes(std::string_view datatype) {
  if (datatype.starts_with("ncclFloat8")) return 1;
  if (datatype.ends_with("64")) return 8;
  if (datatype.ends_with("32")) return 4;
  if (datatype.ends_with("16")) return 2;
  return datatype.ends_with("t8") ? std::optional(int64_t{1}) : std::nullopt;
}

// The name shown for GPU work that isn't a kernel; a kernel has its own name.
std::string LeafName(Total::Of of, std::string_view name) {
  switch (of) {
    case Total::Of::kKernel:
      return std::string(name);
    case Total::Of::kMemcpy:
      return fmt::format("[memcpy {}]", name);
    case Total::Of::kMemset:
      return "[memset]";
    case Total::Of::kSync:
      break;
  }
  return fmt::format("[sync {}]", name);
}

}  // namespace

GpuRows::GpuRows(Options options, Rows& rows, model::DropCounts& drops)
    : options_(std::move(options)), rows_(rows), drops_(drops) {}

void GpuRows::Ingest(const cupti::Event& event, const Id128& process, std::optional<Id128> stack) {
  Session& session = SessionOf(process, event.session);
  session_number_ = static_cast<int32_t>(event.session);
  std::visit(
      [&](const auto& what) {
        using What = std::decay_t<decltype(what)>;
        if constexpr (std::is_same_v<What, cupti::Call>)
          WriteCall(event, what, session, stack);
        else if constexpr (std::is_same_v<What, cupti::GraphNode>)
          WriteNode(what, session, stack);
        else if constexpr (std::is_same_v<What, cupti::Range>)
          WriteRange(event, what, session);
        else if constexpr (std::is_same_v<What, cupti::Collective>)
          WriteCollective(event, what, session);
        else
          Write(what, session);
      },
      event.what);
}

void GpuRows::Finish(const Id128& process) {
  const auto found = sessions_.find(process);
  if (found == sessions_.end()) return;
  WriteMissing(found->second);
  CountUnreported(found->second);
  sum_bytes_ -= found->second.sum_bytes;
  sessions_.erase(found);
}

void GpuRows::FinishAll() {
  for (auto& [process, session] : sessions_) WriteMissing(session);
  sessions_.clear();
  sum_bytes_ = 0;
}

void GpuRows::Rewrite() {
  options_.devices->ForEach([this](const model::Device& device) { rows_.devices.Append(device); });
  for (const auto& [process, session] : sessions_)
    if (session.row.start_ns != 0) rows_.gpu_sessions.Append(session.row);
}

GpuRows::Session& GpuRows::SessionOf(const Id128& process, uint32_t number) {
  const auto [found, is_new] = sessions_.try_emplace(process);
  Session& session = found->second;
  const auto wanted = static_cast<int32_t>(number);
  // Late records of the previous session become rows like any other, though its totals are already compared.
  if (is_new || wanted > session.row.session) {
    if (!is_new) WriteMissing(session);
    sum_bytes_ -= session.sum_bytes;
    session = {};
    session.row.process = process;
    session.row.session = wanted;
  }
  return session;
}

Id128 GpuRows::DeviceOf(const Session& session, uint32_t ordinal) const {
  const auto known = session.devices.find(ordinal);
  return known == session.devices.end() ? Id128{} : known->second;
}

// Counts calls whose GPU work was never reported. A program that ends in an orderly way reports everything
// and an end.
void GpuRows::CountUnreported(const Session& session) {
  if (session.row.end_ns.has_value()) return;
  double calls = 0;
  for (const Launch& launch : session.launches)
    if (!IsReported(session, launch)) calls += launch.stands_for;
  drops_.Add(model::DropReason::kGpuWorkUnreported, std::llround(calls));
}

bool GpuRows::IsReported(const Session& session, const Launch& launch) {
  return session.reported.has_value() && !IsLater(launch.correlation, *session.reported);
}

bool GpuRows::AddSumBytes(Session& session, std::string_view name) {
  constexpr size_t kEntryBytes = 128;
  const size_t bytes = kEntryBytes + name.size();
  if (session.sum_bytes + bytes > kMaxSumBytes || sum_bytes_ + bytes > kMaxSumBytesInAll) {
    drops_.Add(model::DropReason::kGpuTotalsLost);
    return false;
  }
  session.sum_bytes += bytes;
  sum_bytes_ += bytes;
  return true;
}

GpuRows::Sum* GpuRows::SeenOf(Session& session, const TotalView& key) {
  if (session.last_seen != nullptr && session.last_seen->first == key) return &session.last_seen->second;
  auto sum = session.seen.find(key);
  if (sum == session.seen.end()) {
    if (!AddSumBytes(session, std::get<2>(key))) return nullptr;
    sum = session.seen.try_emplace(TotalKey(key)).first;
  }
  session.last_seen = &*sum;
  return &sum->second;
}

bool GpuRows::Timed(Session& session, const cupti::Activity& activity, Total::Of of, std::string_view name) {
  // Where CUPTI didn't take our clock, its times are the epoch's: beyond any uptime.
  const bool other_clock = Epoch(0) > 0 && activity.end_ns >= Epoch(0);
  if (activity.start_ns == 0 || activity.end_ns < activity.start_ns || other_clock) {
    drops_.Add(model::DropReason::kGpuUntimed);
    return false;
  }
  if (session_number_ != session.row.session) return true;
  Sum* const sum = SeenOf(session, {of, activity.device, name});
  if (sum == nullptr) return false;
  if (!session.reported.has_value() || IsLater(activity.correlation, *session.reported))
    session.reported = activity.correlation;
  ++sum->count;
  sum->total_ns = AddSaturated(sum->total_ns, activity.end_ns - activity.start_ns);
  const int64_t start_ns = Epoch(activity.start_ns);
  session.first_ns = session.first_ns == 0 ? start_ns : std::min(session.first_ns, start_ns);
  session.last_ns = std::max(session.last_ns, Epoch(activity.end_ns));
  return true;
}

void GpuRows::WriteMissing(Session& session) {
  for (const auto& [key, total] : session.totals) {
    const auto& [of, device, name] = key;
    const auto known = session.seen.find(key);
    Sum seen = known == session.seen.end() ? Sum() : known->second;
    if (const auto earlier = session.earlier.find(key); earlier != session.earlier.end()) {
      seen.count = AddSaturated(seen.count, earlier->second.count);
      seen.total_ns = AddSaturated(seen.total_ns, earlier->second.total_ns);
    }
    if (total.count <= seen.count) continue;
    drops_.Add(model::DropReason::kGpuRecordsSummed, total.count - seen.count);
    if (of == Total::Of::kSync) continue;  // waiting is not work
    rows_.kernel_windows.Append(
        {.start_ns = session.row.start_ns != 0 ? session.row.start_ns : session.first_ns,
         .end_ns = std::max(session.last_ns, session.row.end_ns.value_or(0)),
         .process = session.row.process,
         .device = DeviceOf(session, device),
         .name = LeafName(of, name),
         .stack = std::nullopt,
         .count = total.count - seen.count,
         .duration_ns = std::max<int64_t>(total.total_ns - seen.total_ns, 0),
         .sketch = {}});
  }
}

void GpuRows::Write(const cupti::SessionBegin& begin, Session& session) {
  if (session.row.start_ns != 0) return;  // once more, for names that were lost
  session.row.start_ns = Epoch(begin.begin_ns);
  session.row.cupti_version = static_cast<int32_t>(begin.cupti_version);
  rows_.gpu_sessions.Append(session.row);
}

void GpuRows::Write(const cupti::SessionEnd& end, Session& session) {
  session.row.end_ns = Epoch(end.end_ns);
  // Profiling may start in the middle of a session, without its begin: the session then starts with its first
  // activity.
  if (session.row.start_ns == 0)
    session.row.start_ns = session.first_ns != 0 ? session.first_ns : *session.row.end_ns;
  session.row.end_reason = std::string(NameOf(end.reason));
  rows_.gpu_sessions.Append(session.row);
}

void GpuRows::Write(const cupti::Device& device, Session& session) {
  const bool known = std::ranges::any_of(device.uuid, [](uint8_t byte) { return byte != 0; });
  const std::string uuid = known ? FormatUuid(device.uuid) : "";
  const model::Device row{
      .device = known ? DeviceIdOf(uuid)
                      : IdHasher("device").Add(options_.host).Add(uint64_t{device.ordinal}).Finish(),
      .source = options_.source,
      .ordinal = static_cast<int32_t>(device.ordinal),
      .uuid = uuid,
      .name = ToUtf8(device.name),
      .simulated = SaysSimulated(device.name),
      .sm_count = device.sm_count > 0 ? std::optional(device.sm_count) : std::nullopt,
      .memory_bytes = device.memory_bytes > 0 ? std::optional(device.memory_bytes) : std::nullopt,
      .pci_bus = device.pci_bus.empty() ? std::nullopt : std::optional(ToUtf8(device.pci_bus))};
  if (!options_.devices->HasRoomFor(row.device) ||
      (!session.devices.contains(device.ordinal) && session.devices.size() >= kMaxDevices))
    return drops_.Add(model::DropReason::kGpuMalformed);
  session.devices[device.ordinal] = row.device;
  if (const auto updated = options_.devices->Add(row, DeviceTable::Witness::kCuda); updated.has_value())
    rows_.devices.Append(*updated);
}

void GpuRows::Write(const cupti::Kernel& kernel, Session& session) {
  if (!Timed(session, kernel, Total::Of::kKernel, kernel.name)) return;
  if (options_.pack_kernels)
    return packer_.Add(session.row.process, DeviceOf(session, kernel.device), session_number_, kernel,
                       Epoch(kernel.start_ns), Epoch(kernel.end_ns));
  rows_.kernels.Append({.process = session.row.process,
                        .device = DeviceOf(session, kernel.device),
                        .session = session_number_,
                        .correlation = kernel.correlation,
                        .context = kernel.context,
                        .stream = StreamOf(kernel.stream),
                        .start_ns = Epoch(kernel.start_ns),
                        .end_ns = Epoch(kernel.end_ns),
                        .name = ToUtf8(kernel.name),
                        .grid_x = static_cast<int32_t>(kernel.grid_x),
                        .grid_y = static_cast<int32_t>(kernel.grid_y),
                        .grid_z = static_cast<int32_t>(kernel.grid_z),
                        .block_x = kernel.block_x,
                        .block_y = kernel.block_y,
                        .block_z = kernel.block_z,
                        .registers = kernel.registers,
                        .static_shared_bytes = kernel.static_shared_bytes,
                        .dynamic_shared_bytes = kernel.dynamic_shared_bytes,
                        .graph_node = NodeOf(kernel)});
}

void GpuRows::Write(const cupti::Memcpy& copy, Session& session) {
  if (!Timed(session, copy, Total::Of::kMemcpy, copy.kind)) return;
  rows_.memcpys.Append({.process = session.row.process,
                        .device = DeviceOf(session, copy.device),
                        .session = session_number_,
                        .correlation = copy.correlation,
                        .context = copy.context,
                        .stream = StreamOf(copy.stream),
                        .start_ns = Epoch(copy.start_ns),
                        .end_ns = Epoch(copy.end_ns),
                        .bytes = static_cast<int64_t>(copy.bytes),
                        .kind = std::string(copy.kind),
                        .source_memory = std::string(copy.source_memory),
                        .target_memory = std::string(copy.target_memory),
                        .asynchronous = copy.asynchronous,
                        .graph_node = NodeOf(copy)});
}

void GpuRows::Write(const cupti::Memset& set, Session& session) {
  if (!Timed(session, set, Total::Of::kMemset, "")) return;
  rows_.memsets.Append({.process = session.row.process,
                        .device = DeviceOf(session, set.device),
                        .session = session_number_,
                        .correlation = set.correlation,
                        .context = set.context,
                        .stream = StreamOf(set.stream),
                        .start_ns = Epoch(set.start_ns),
                        .end_ns = Epoch(set.end_ns),
                        .bytes = static_cast<int64_t>(set.bytes),
                        .graph_node = NodeOf(set)});
}

void GpuRows::Write(const cupti::Sync& sync, Session& session) {
  if (!Timed(session, sync, Total::Of::kSync, sync.kind)) return;
  rows_.syncs.Append({.process = session.row.process,
                      .device = DeviceOf(session, sync.device),
                      .session = session_number_,
                      .correlation = sync.correlation,
                      .context = sync.context,
                      .stream = StreamOf(sync.stream),
                      .start_ns = Epoch(sync.start_ns),
                      .end_ns = Epoch(sync.end_ns),
                      .kind = std::string(sync.kind)});
}

// The numbers come from an untrusted process: drop totals that can't be counts or durations.
void GpuRows::Write(const cupti::Total& total, Session& session) {
  constexpr auto kMax = static_cast<uint64_t>(INT64_MAX);
  if (total.count > kMax || total.untimed > total.count || total.total_ns > kMax) {
    drops_.Add(model::DropReason::kGpuMalformed);
    return;
  }
  if (session_number_ != session.row.session) return;
  const TotalKey key{total.of, total.device, std::string(total.name)};
  const Sum sum{static_cast<int64_t>(total.count - total.untimed), static_cast<int64_t>(total.total_ns)};
  const bool is_known = total.joined ? session.earlier.contains(key) : session.totals.contains(key);
  if (!is_known && !AddSumBytes(session, total.name)) return;
  if (!total.joined) {
    session.totals[key] = sum;
    return;
  }
  // Totals include records that became rows by now.
  const auto known = session.seen.find(key);
  const Sum seen = known == session.seen.end() ? Sum() : known->second;
  session.earlier.try_emplace(key, Sum{.count = std::max<int64_t>(sum.count - seen.count, 0),
                                       .total_ns = std::max<int64_t>(sum.total_ns - seen.total_ns, 0)});
}

void GpuRows::Write(const cupti::Foreign& foreign, Session&) {
  LogWarn("{} uses CUPTI in a profiled process; its GPU work is not profiled for {} s",
          foreign.holder.empty() ? "another tool" : ToUtf8(foreign.holder),
          std::max<int64_t>(foreign.until_ns - MonotonicNow(), 0) / kNanosPerSecond);
}

void GpuRows::Write(const cupti::Overhead& overhead, Session& session) {
  const auto write = [&](model::Metric metric, double share) {
    constexpr double kPercent = 100;
    rows_.metrics.Append({.time_ns = Epoch(overhead.time_ns),
                          .source = options_.source,
                          .device = {},
                          .process = session.row.process,
                          .metric = std::string(model::InfoOf(metric).name),
                          .value = kPercent * share});
  };
  write(model::Metric::kOverheadBudget, overhead.budget);
  write(model::Metric::kOverheadSpent, overhead.spent);
  if (!overhead.known) return;
  write(model::Metric::kOverheadCost, overhead.cost);
  write(model::Metric::kOverheadCostHigh, overhead.cost_high);
  write(model::Metric::kOverheadCostLow, overhead.cost_low);
}

void GpuRows::WriteCall(const cupti::Event& event, const cupti::Call& call, Session& session,
                        std::optional<Id128> stack) {
  if (session_number_ == session.row.session && call.result == 0) {
    if (session.launches.size() == kMaxLaunches)
      std::erase_if(session.launches, [&](const Launch& launch) { return IsReported(session, launch); });
    if (session.launches.size() < kMaxLaunches)
      session.launches.push_back({call.correlation, 1 / call.probability});
  }
  rows_.api_calls.Append({.process = session.row.process,
                          .tid = event.tid,
                          .session = session_number_,
                          .correlation = call.correlation,
                          .start_ns = Epoch(call.start_ns),
                          .end_ns = Epoch(call.end_ns),
                          .domain = std::string(call.domain),
                          .name = std::string(call.name),
                          .result = call.result,
                          .stack = stack,
                          .probability = call.probability});
}

void GpuRows::WriteNode(const cupti::GraphNode& node, Session& session, std::optional<Id128> stack) {
  rows_.graph_nodes.Append({.process = session.row.process,
                            .session = session_number_,
                            .graph = node.graph,
                            .node = static_cast<int64_t>(node.node),
                            .original_node = node.original_node == 0
                                                 ? std::nullopt
                                                 : std::optional(static_cast<int64_t>(node.original_node)),
                            .created_ns = Epoch(node.created_ns),
                            .stack = stack});
}

void GpuRows::WriteRange(const cupti::Event& event, const cupti::Range& range, Session& session) {
  rows_.ranges.Append({.process = session.row.process,
                       .tid = event.tid,
                       .start_ns = Epoch(range.start_ns),
                       .end_ns = EpochIfKnown(range.end_ns),
                       .kind = std::string(range.kind),
                       .domain = ToUtf8(range.domain),
                       .name = ToUtf8(range.text)});
}

void GpuRows::Write(const cupti::Communicator& communicator, Session& session) {
  rows_.communicators.Append({.process = session.row.process,
                              .communicator = CommunicatorId(communicator.communicator),
                              .rank = communicator.rank,
                              .ranks = KnownCount(communicator.ranks),
                              .nodes = KnownCount(communicator.nodes),
                              .name = ToUtf8(communicator.name),
                              .joined_ns = Epoch(communicator.joined_ns),
                              .left_ns = EpochIfKnown(communicator.left_ns),
                              .dropped = communicator.dropped,
                              .plugin_version = communicator.plugin_version});
}

void GpuRows::WriteCollective(const cupti::Event& event, const cupti::Collective& collective,
                              Session& session) {
  const std::optional<int64_t> element = ElementBytes(collective.datatype);
  int64_t bytes = 0;
  const bool sized = element.has_value() && !__builtin_mul_overflow(collective.count, *element, &bytes);
  rows_.collectives.Append(
      {.process = session.row.process,
       .tid = event.tid,
       .communicator = CommunicatorId(collective.communicator),
       .rank = collective.rank,
       .operation = ToUtf8(collective.operation),
       .sequence = collective.sequence,
       .called_ns = Epoch(collective.called_ns),
       .enqueued_ns = EpochIfKnown(collective.enqueued_ns),
       .begin_ns = EpochIfKnown(collective.begin_ns),
       .end_ns = EpochIfKnown(collective.end_ns),
       .gpu_ns = collective.gpu_ns == 0 ? std::nullopt : std::optional(collective.gpu_ns),
       .count = collective.count,
       .datatype = ToUtf8(collective.datatype),
       .bytes = sized ? std::optional(bytes) : std::nullopt,
       .root = collective.root,
       .algorithm = ToUtf8(collective.algorithm),
       .protocol = ToUtf8(collective.protocol),
       .channels = collective.channels});
}

}  // namespace gpusonde::agent
