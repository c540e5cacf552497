// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/decoder.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "sources/cupti/names.h"
#include "wire/nvidia/cupti.h"

namespace gpusonde::cupti {
namespace {

using model::DropReason;

std::string_view Text(const char* text, size_t room) { return {text, ::strnlen(text, room)}; }

// Whether a time fits an int64_t.
bool IsTime(uint64_t ns) { return ns <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()); }

bool SetTimes(Activity& activity, uint64_t start_ns, uint64_t end_ns) {
  if (!IsTime(start_ns) || !IsTime(end_ns)) return false;
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

// Says as which struct a record is read.
template <class Wire>
constexpr std::type_identity<Wire> kWire;

// Copies a record into a struct; nullopt if it is too short.
template <class Wire>
std::optional<Wire> As(std::span<const std::byte> bytes) {
  std::optional<Wire> wire;
  if (bytes.size() >= sizeof(Wire)) std::memcpy(&wire.emplace(), bytes.data(), sizeof(Wire));
  return wire;
}

// The text after a record's fixed part.
template <class Wire>
std::string_view TextAfter(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()) + sizeof(Wire), bytes.size() - sizeof(Wire)};
}

std::optional<SessionBegin> Read(const gpusonde_gpu_session_begin& wire) {
  if (!IsTime(wire.begin_ns)) return std::nullopt;
  return SessionBegin{.begin_ns = static_cast<int64_t>(wire.begin_ns), .cupti_version = wire.cupti_version};
}

std::optional<SessionBegin> Read(const gpusonde_gpu_snapshot_begin& wire) {
  const uint64_t begin_ns = std::max(wire.begin_ns, wire.since_ns);
  if (!IsTime(begin_ns)) return std::nullopt;
  return SessionBegin{.begin_ns = static_cast<int64_t>(begin_ns),
                      .cupti_version = wire.cupti_version,
                      .joined = wire.since_ns > wire.begin_ns};
}

std::optional<SessionEnd> Read(const gpusonde_gpu_session_end& wire) {
  static constexpr EndReason kReasons[] = {EndReason::kUnknown, EndReason::kNoConsumer, EndReason::kGovernor,
                                           EndReason::kForeign, EndReason::kExit,       EndReason::kCupti};
  if (!IsTime(wire.end_ns)) return std::nullopt;
  return SessionEnd{
      .end_ns = static_cast<int64_t>(wire.end_ns),
      .reason = wire.reason < std::size(kReasons) ? kReasons[wire.reason] : EndReason::kUnknown};
}

std::optional<Overhead> Read(const gpusonde_gpu_overhead& wire) {
  // No program's steps take more than a hundred times as long by being profiled.
  constexpr int32_t kMaxPpm = 100'000'000;
  const auto absurd = [](int32_t ppm) { return ppm < -kMaxPpm || ppm > kMaxPpm; };
  if (!IsTime(wire.time_ns) || wire.budget > kMaxPpm || wire.spent > kMaxPpm || wire.measured > kMaxPpm ||
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

// The texts refer to `wire`.
std::optional<Device> Read(const gpusonde_gpu_device& wire) {
  if (!IsTime(wire.memory_bytes)) return std::nullopt;
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
  if (!SetActivity(copy, wire) || !IsTime(wire.bytes)) return std::nullopt;
  copy.bytes = wire.bytes;
  copy.kind = CopyKindName(wire.copy_kind);
  copy.source_memory = MemoryKindName(wire.source_kind);
  copy.target_memory = MemoryKindName(wire.target_kind);
  copy.asynchronous = wire.asynchronous != 0;
  return copy;
}

std::optional<Memset> Read(const gpusonde_gpu_memset& wire) {
  Memset set;
  if (!SetActivity(set, wire) || !IsTime(wire.bytes)) return std::nullopt;
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
  if (wire.untimed > wire.count || !IsTime(wire.count) || !IsTime(wire.total_ns) || !IsTime(wire.bytes))
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
  if (!probability || !IsTime(wire.end_ns) || wire.end_ns < wire.start_ns) return std::nullopt;
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
  if (!probability || !IsTime(wire.created_ns)) return std::nullopt;
  return GraphNode{.node = wire.node,
                   .original_node = wire.original_node,
                   .graph = wire.graph,
                   .created_ns = static_cast<int64_t>(wire.created_ns),
                   .probability = *probability};
}

std::optional<Foreign> Read(const gpusonde_gpu_foreign& wire) {
  if (!IsTime(wire.until_ns)) return std::nullopt;
  return Foreign{.until_ns = static_cast<int64_t>(wire.until_ns),
                 .holder = Text(wire.holder, sizeof wire.holder)};
}

std::optional<Communicator> Read(const gpusonde_gpu_communicator& wire) {
  if (wire.rank < 0 || wire.ranks < 0 || wire.nodes < 0 || !IsTime(wire.joined_ns) || !IsTime(wire.left_ns) ||
      !IsTime(wire.dropped) || wire.plugin_version > INT16_MAX)
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
    if (!IsTime(value)) return std::nullopt;
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

}  // namespace

bool Decoder::Received::Mark(uint64_t sequence) {
  if (!any) {
    any = true;
    first = last = sequence;
    count = 1;
    recent.assign(kWindow, false);
    recent[sequence % kWindow] = true;
    return true;
  }
  if (sequence > last) {
    // Clear the bits that the newer sequence numbers reuse.
    const uint64_t fresh = std::min(sequence - last, kWindow);
    for (uint64_t i = 0; i < fresh; ++i) recent[(sequence - i) % kWindow] = false;
    last = sequence;
  } else if (last - sequence >= kWindow || recent[sequence % kWindow]) {
    return false;
  }
  first = std::min(first, sequence);
  recent[sequence % kWindow] = true;
  ++count;
  return true;
}

int64_t Decoder::Received::CountNewlyLost(bool final) {
  if (!any) return 0;
  const uint64_t expected = last - first + 1;
  const uint64_t lost = expected > count ? expected - count : 0;
  const uint64_t sure = final ? lost : std::min(lost, missing);
  missing = lost;
  if (sure <= reported) return 0;
  const uint64_t increase = sure - reported;
  reported = sure;
  // A jump of the sequence number by more than a process can send is forged.
  return increase <= uint64_t{1} << 40 ? static_cast<int64_t>(increase) : 0;
}

Decoder::Process* Decoder::FindProcess(int32_t pid) {
  const auto found = processes_.find(pid);
  if (found != processes_.end()) return &found->second;
  if (processes_.size() == kMaxProcesses) {
    drops_.Add(DropReason::kTooManyProcesses);
    return nullptr;
  }
  return &processes_[pid];
}

void Decoder::BeginInstance(Process& process, uint64_t instance) {
  CountLostOnTheWay(process);
  DropHeld(process);
  ForgetNames(process);
  const uint32_t sessions = process.session;
  process = {.instance = instance, .earlier_sessions = sessions, .session = sessions, .names = {}};
}

void Decoder::CountLostOnTheWay(Process& process) {
  for (Received& received : process.received)
    drops_.Add(DropReason::kGpuMessagesLost, received.CountNewlyLost(true));
}

void Decoder::Decode(const Origin& origin, std::span<const std::byte> batch, const Visit& visit) {
  const std::optional<gpusonde_gpu_batch> header = As<gpusonde_gpu_batch>(batch);
  if (!header || header->magic != GPUSONDE_GPU_MAGIC || header->version != GPUSONDE_GPU_VERSION ||
      header->bytes != batch.size() || header->channel >= GPUSONDE_GPU_CHANNELS)
    return CountMalformed();
  Process* process = FindProcess(origin.pid);
  if (process == nullptr) return;
  if (header->instance > process->instance) BeginInstance(*process, header->instance);
  // A batch from before the last exec that arrives after the new instance's first one is counted as lost.
  if (header->instance < process->instance) return drops_.Add(DropReason::kGpuMessagesLost);
  if (!process->received[header->channel].Mark(header->sequence)) return;
  const uint32_t session = header->session == 0 ? 0 : process->earlier_sessions + header->session;
  if (session > process->session) BeginSession(origin.pid, *process, session, visit);
  if (header->channel == GPUSONDE_GPU_SNAPSHOT) {
    if (session == process->session) DecodeSnapshot(origin.pid, *process, *header, batch, visit);
  } else if (session != process->session || !Hold(*process, *header, batch)) {
    DecodeRecords(origin, *process, session, batch.subspan(sizeof *header), visit);
  }
}

void Decoder::BeginSession(int32_t pid, Process& process, uint32_t session, const Visit& visit) {
  ReleaseHeld(pid, process, visit);
  process.session = session;
  ForgetNames(process);
  process.state = Process::Names::kMissing;
  process.next_of_snapshot.reset();
}

bool Decoder::Hold(Process& process, const gpusonde_gpu_batch& header, std::span<const std::byte> batch) {
  if (process.state != Process::Names::kMissing || header.session == 0 ||
      header.channel == GPUSONDE_GPU_LAUNCH)
    return false;
  if (const auto first = As<gpusonde_gpu_record>(batch.subspan(sizeof header));
      first.has_value() && first->type == GPUSONDE_GPU_SESSION_BEGIN) {
    process.state = Process::Names::kComplete;
    return false;
  }
  if (!snapshots_ || process.held_bytes + batch.size() > kMaxHeldBytes ||
      held_bytes_ + batch.size() > kMaxHeldBytesInAll)
    return false;
  process.held.emplace_back(batch.begin(), batch.end());
  process.held_bytes += batch.size();
  held_bytes_ += batch.size();
  return true;
}

// A snapshot is used only if all its batches arrive in order, from its begin on.
void Decoder::DecodeSnapshot(int32_t pid, Process& process, const gpusonde_gpu_batch& header,
                             std::span<const std::byte> batch, const Visit& visit) {
  const std::span<const std::byte> records = batch.subspan(sizeof header);
  const auto first = As<gpusonde_gpu_record>(records);
  if (first.has_value() && first->type == GPUSONDE_GPU_SNAPSHOT_BEGIN)
    process.next_of_snapshot =
        process.state == Process::Names::kComplete ? std::nullopt : std::optional(header.sequence);
  if (process.next_of_snapshot != header.sequence) return process.next_of_snapshot.reset();
  process.next_of_snapshot = header.sequence + 1;
  DecodeRecords({.pid = pid}, process, process.session, records, visit);
}

void Decoder::ReleaseHeld(int32_t pid, Process& process, const Visit& visit) {
  const std::optional<uint64_t> next_of_snapshot = std::exchange(process.next_of_snapshot, {});
  held_bytes_ -= process.held_bytes;
  process.held_bytes = 0;
  for (const std::vector<std::byte>& batch : std::exchange(process.held, {}))
    DecodeRecords({.pid = pid}, process, process.session,
                  std::span(batch).subspan(sizeof(gpusonde_gpu_batch)), visit);
  process.next_of_snapshot = next_of_snapshot;
}

std::vector<int32_t> Decoder::Holding() const {
  std::vector<int32_t> pids;
  for (const auto& [pid, process] : processes_)
    if (!process.held.empty()) pids.push_back(pid);
  return pids;
}

void Decoder::Release(const Visit& visit) {
  for (auto& [pid, process] : processes_) {
    if (process.held.empty()) continue;
    process.state = Process::Names::kGivenUp;
    ReleaseHeld(pid, process, visit);
  }
}

void Decoder::DropHeld(Process& process) {
  drops_.Add(DropReason::kGpuMessagesLost, std::ssize(process.held));
  held_bytes_ -= process.held_bytes;
  process.held.clear();
  process.held_bytes = 0;
}

void Decoder::DecodeRecords(const Origin& origin, Process& process, uint32_t session,
                            std::span<const std::byte> rest, const Visit& visit) {
  Event event{.pid = origin.pid,
              .tid = 0,
              .session = session,
              .stack = origin.stack,
              .stack_taken = origin.stack_taken,
              .what = {}};
  while (!rest.empty()) {
    const std::optional<gpusonde_gpu_record> record = As<gpusonde_gpu_record>(rest);
    if (!record || record->bytes < sizeof *record || record->bytes % 8 != 0 || record->bytes > rest.size())
      return CountMalformed();
    event.tid = origin.tid;
    DecodeRecord(*record, rest.first(record->bytes), process, event, visit);
    rest = rest.subspan(record->bytes);
  }
}

void Decoder::DecodeRecord(const gpusonde_gpu_record& record, std::span<const std::byte> bytes,
                           Process& process, Event& event, const Visit& visit) {
  // Reads a record as `Wire`; if it is valid, `after` completes the event, which is then visited.
  const auto decode = [&]<class Wire>(std::type_identity<Wire>, auto after) {
    const std::optional<Wire> wire = As<Wire>(bytes);
    auto decoded = wire ? Read(*wire) : decltype(Read(*wire)){};
    if (!decoded) return CountMalformed();
    after(*wire, *decoded);
    event.what.emplace<std::remove_cvref_t<decltype(*decoded)>>(*decoded);
    visit(event);
  };
  // The tid from the kernel has precedence over the one in the record.
  const auto set_tid = [&](uint32_t tid) {
    if (event.tid == 0) event.tid = static_cast<int32_t>(tid);
  };
  const auto nothing = [&](const auto&, auto&) { event.tid = 0; };

  switch (record.type) {
    case GPUSONDE_GPU_SESSION_BEGIN:
      return decode(kWire<gpusonde_gpu_session_begin>, nothing);
    case GPUSONDE_GPU_SESSION_END:
      return decode(kWire<gpusonde_gpu_session_end>, nothing);
    case GPUSONDE_GPU_NAME: {
      const std::optional<gpusonde_gpu_name> name = As<gpusonde_gpu_name>(bytes);
      if (!name || name->length > bytes.size() - sizeof *name) return CountMalformed();
      if (event.session == process.session)
        KeepName(process, name->id, TextAfter<gpusonde_gpu_name>(bytes).substr(0, name->length));
      return;
    }
    case GPUSONDE_GPU_DEVICE:
      return decode(kWire<gpusonde_gpu_device>, nothing);
    case GPUSONDE_GPU_KERNEL:
      return decode(kWire<gpusonde_gpu_kernel>, [&](const auto& wire, Kernel& kernel) {
        event.tid = 0;
        kernel.name = NameOf(process, event.session, wire.name);
        if (!kernel.name.empty() || wire.name == GPUSONDE_GPU_OTHER_NAME) return;
        drops_.Add(DropReason::kGpuNameLost);
        // Its name was lost in transit: hold further records until the next snapshot.
        if (event.session == process.session && process.state == Process::Names::kComplete)
          process.state = Process::Names::kMissing;
      });
    case GPUSONDE_GPU_MEMCPY:
      return decode(kWire<gpusonde_gpu_memcpy>, nothing);
    case GPUSONDE_GPU_MEMSET:
      return decode(kWire<gpusonde_gpu_memset>, nothing);
    case GPUSONDE_GPU_SYNC:
      return decode(kWire<gpusonde_gpu_sync>, nothing);
    case GPUSONDE_GPU_TOTAL:
      return decode(kWire<gpusonde_gpu_total>, [&](const auto& wire, Total& total) {
        event.tid = 0;
        if (total.of == Total::Of::kKernel) total.name = NameOf(process, event.session, wire.key);
        total.joined = process.next_of_snapshot.has_value();
      });
    case GPUSONDE_GPU_DROPS: {
      const std::optional<gpusonde_gpu_drops> drops = As<gpusonde_gpu_drops>(bytes);
      if (!drops) return CountMalformed();
      // The last record of a snapshot is the drops from before we joined: the base of later counts.
      if (!std::exchange(process.next_of_snapshot, {}).has_value()) return AddLibraryDrops(process, *drops);
      std::copy(std::begin(drops->counts), std::end(drops->counts), std::begin(process.drops));
      return;
    }
    case GPUSONDE_GPU_CALL:
      return decode(kWire<gpusonde_gpu_call>, [&](const auto& wire, auto&) { set_tid(wire.tid); });
    case GPUSONDE_GPU_GRAPH_NODE:
      return decode(kWire<gpusonde_gpu_graph_node>, [&](const auto& wire, GraphNode&) {
        // Without a stack it was sent in a shared batch, possibly by another thread.
        if (!event.stack_taken) event.tid = 0;
        set_tid(wire.tid);
      });
    case GPUSONDE_GPU_RANGE: {
      const std::optional<gpusonde_gpu_range> range = As<gpusonde_gpu_range>(bytes);
      if (!range || size_t{range->text_length} + range->domain_length > bytes.size() - sizeof *range ||
          !IsTime(range->end_ns) || (range->end_ns != 0 && range->end_ns < range->start_ns) ||
          !IsTime(range->start_ns) || RangeKindName(range->kind).empty())
        return CountMalformed();
      const std::string_view texts = TextAfter<gpusonde_gpu_range>(bytes);
      event.tid = static_cast<int32_t>(range->tid);
      event.what = Range{.start_ns = static_cast<int64_t>(range->start_ns),
                         .end_ns = static_cast<int64_t>(range->end_ns),
                         .kind = RangeKindName(range->kind),
                         .domain = texts.substr(range->text_length, range->domain_length),
                         .text = texts.substr(0, range->text_length)};
      return visit(event);
    }
    case GPUSONDE_GPU_COMMUNICATOR:
      return decode(kWire<gpusonde_gpu_communicator>, nothing);
    case GPUSONDE_GPU_COLLECTIVE:
      return decode(kWire<gpusonde_gpu_collective>,
                    [&](const auto& wire, auto&) { event.tid = static_cast<int32_t>(wire.tid); });
    case GPUSONDE_GPU_OVERHEAD:
      return decode(kWire<gpusonde_gpu_overhead>, nothing);
    case GPUSONDE_GPU_FOREIGN:
      return decode(kWire<gpusonde_gpu_foreign>, nothing);
    case GPUSONDE_GPU_SNAPSHOT_BEGIN:
      return decode(kWire<gpusonde_gpu_snapshot_begin>, nothing);
    case GPUSONDE_GPU_SNAPSHOT_END:
      if (!process.next_of_snapshot.has_value()) return CountMalformed();
      process.state = Process::Names::kComplete;
      return ReleaseHeld(event.pid, process, visit);
    default:
      return;  // a record type of a newer library
  }
}

std::string_view Decoder::NameOf(const Process& process, uint32_t session, uint32_t id) {
  if (session != process.session || id >= process.names.size()) return {};
  return process.names[id];
}

void Decoder::KeepName(Process& process, uint32_t id, std::string_view text) {
  if (id == GPUSONDE_GPU_OTHER_NAME || id > kMaxNameId) return CountMalformed();
  const size_t places = std::max<size_t>(id + 1, process.names.size()) - process.names.size();
  const size_t more = text.size() + places * sizeof(std::string);
  if (process.name_bytes + more > kMaxNameBytes || name_bytes_ + more > max_name_bytes_in_all_)
    return drops_.Add(DropReason::kGpuNameLost);
  process.names.resize(process.names.size() + places);
  const size_t before = std::exchange(process.names[id], std::string(text)).size();
  process.name_bytes += more - before;
  name_bytes_ += more - before;
}

void Decoder::ForgetNames(Process& process) {
  name_bytes_ -= std::exchange(process.name_bytes, 0);
  process.names = {};
}

void Decoder::AddLibraryDrops(Process& process, const gpusonde_gpu_drops& drops) {
  static constexpr DropReason kReasons[GPUSONDE_GPU_DROP_REASONS] = {
      DropReason::kGpuRecordsDropped, DropReason::kGpuRecordsDropped, DropReason::kGpuMalformed,
      DropReason::kGpuNameLost,       DropReason::kGpuNameLost,       DropReason::kGpuTotalsLost,
      DropReason::kGpuMessagesLost,   DropReason::kGpuRangesDropped,
  };
  for (size_t i = 0; i < std::size(kReasons); ++i) {
    const uint64_t before = std::exchange(process.drops[i], drops.counts[i]);
    // Counted elsewhere: CUPTI counts records without a buffer as dropped, and batches that were not sent
    // leave a gap in the sequence.
    if (i == GPUSONDE_GPU_DROP_BUFFERS || i == GPUSONDE_GPU_DROP_SEND) continue;
    const uint64_t increase = drops.counts[i] - before;
    if (drops.counts[i] > before && increase <= uint64_t{1} << 40)
      drops_.Add(kReasons[i], static_cast<int64_t>(increase));
  }
}

void Decoder::Forget(int32_t pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  CountLostOnTheWay(found->second);
  DropHeld(found->second);
  ForgetNames(found->second);
  processes_.erase(found);
}

void Decoder::ForgetEnded(std::span<const int32_t> pids, const std::function<bool(int32_t pid)>& runs) {
  for (const int32_t pid : pids)
    if (!runs(pid)) Forget(pid);
}

model::DropCounts Decoder::DrainDrops() {
  for (auto& [pid, process] : processes_)
    for (Received& received : process.received)
      drops_.Add(DropReason::kGpuMessagesLost, received.CountNewlyLost(false));
  return drops_.Take();
}

}  // namespace gpusonde::cupti
