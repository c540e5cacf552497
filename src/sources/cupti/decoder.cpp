// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/decoder.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "sources/cupti/records.h"

namespace gpusonde::cupti {
namespace {

using model::DropReason;

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
      const std::optional<gpusonde_gpu_range> wire = As<gpusonde_gpu_range>(bytes);
      const std::optional<Range> range =
          wire ? Read(*wire, TextAfter<gpusonde_gpu_range>(bytes)) : std::nullopt;
      if (!range) return CountMalformed();
      event.tid = static_cast<int32_t>(wire->tid);
      event.what = *range;
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
