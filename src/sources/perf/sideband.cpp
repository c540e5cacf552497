// SPDX-License-Identifier: Apache-2.0
#include "sources/perf/sideband.h"

#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <optional>

#include "base/fd.h"
#include "sources/refusal.h"

namespace gpusonde::perf {
namespace {

// With sample_id_all and PERF_SAMPLE_TID | PERF_SAMPLE_TIME every record ends with {u32 pid, tid; u64 time}.
struct SampleId {
  uint32_t pid, tid;
  uint64_t time;
};

// Reads fixed-size fields from the front of a record, never past its end.
class Cursor {
 public:
  explicit Cursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T Take() {
    T value{};
    if (bytes_.size() < sizeof(T)) {
      short_ = true;
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_ = bytes_.subspan(sizeof(T));
    return value;
  }

  // The rest of the record as text, up to its first NUL.
  std::string Text() const {
    const auto* text = reinterpret_cast<const char*>(bytes_.data());
    return {text, ::strnlen(text, bytes_.size())};
  }

  bool ran_short() const { return short_; }

 private:
  std::span<const std::byte> bytes_;
  bool short_ = false;
};

MapEvent ParseMap(Cursor& cursor, uint16_t misc) {
  MapEvent map;
  map.pid = static_cast<int32_t>(cursor.Take<uint32_t>());
  cursor.Take<uint32_t>();  // tid
  map.start = cursor.Take<uint64_t>();
  map.length = cursor.Take<uint64_t>();
  map.file_offset = cursor.Take<uint64_t>();
  // 24 bytes: {u8 size, u8, u16, u8 build_id[20]} with this flag, else device, inode and generation.
  const auto identity = cursor.Take<std::array<uint8_t, 24>>();
  if ((misc & PERF_RECORD_MISC_MMAP_BUILD_ID) != 0) {
    const size_t size = std::min<size_t>(identity[0], 20);
    map.build_id.assign(identity.begin() + 4, identity.begin() + 4 + static_cast<ptrdiff_t>(size));
  }
  cursor.Take<uint32_t>();  // protection: only executable mappings are reported
  cursor.Take<uint32_t>();  // flags
  map.path = cursor.Text();
  return map;
}

}  // namespace

Result<bool> ParseRecord(std::span<const std::byte> record, SidebandEvent& event, model::DropCounts& drops) {
  Cursor header_cursor(record);
  const auto header = header_cursor.Take<perf_event_header>();
  if (header_cursor.ran_short() || record.size() < sizeof header + sizeof(SampleId))
    return Fail(ErrorCode::kCorrupt, fmt::format("perf record of {} bytes is too short", record.size()));

  SampleId id;
  std::memcpy(&id, record.data() + record.size() - sizeof id, sizeof id);
  event.time_ns = static_cast<int64_t>(id.time);

  Cursor cursor(record.subspan(sizeof header, record.size() - sizeof header - sizeof id));
  switch (header.type) {
    case PERF_RECORD_MMAP2:
      event.what = ParseMap(cursor, header.misc);
      break;
    case PERF_RECORD_COMM: {
      CommEvent comm;
      comm.pid = static_cast<int32_t>(cursor.Take<uint32_t>());
      comm.tid = static_cast<int32_t>(cursor.Take<uint32_t>());
      comm.exec = (header.misc & PERF_RECORD_MISC_COMM_EXEC) != 0;
      comm.name = cursor.Text();
      event.what = std::move(comm);
      break;
    }
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT: {
      const auto pid = static_cast<int32_t>(cursor.Take<uint32_t>());
      const auto parent_pid = static_cast<int32_t>(cursor.Take<uint32_t>());
      const auto tid = static_cast<int32_t>(cursor.Take<uint32_t>());
      const auto parent_tid = static_cast<int32_t>(cursor.Take<uint32_t>());
      if (header.type == PERF_RECORD_FORK)
        event.what = ForkEvent{.pid = pid, .tid = tid, .parent_pid = parent_pid, .parent_tid = parent_tid};
      else
        event.what = ExitEvent{.pid = pid, .tid = tid};
      break;
    }
    case PERF_RECORD_LOST: {
      cursor.Take<uint64_t>();  // event id
      const auto lost = cursor.Take<uint64_t>();
      drops.Add(model::DropReason::kSidebandLost, static_cast<int64_t>(lost));
      return false;
    }
    default:
      return false;
  }
  if (cursor.ran_short())
    return Fail(ErrorCode::kCorrupt, fmt::format("perf record of type {} ends after {} bytes",
                                                 static_cast<uint32_t>(header.type), record.size()));
  return true;
}

// One CPU's ring; layout and memory order: perf_event_open(2), "MMAP layout".
struct Sideband::Ring {
  Fd fd;
  std::byte* base = nullptr;
  size_t page = 0;
  size_t size = 0;
  std::vector<std::byte> unwrapped;

  Ring() = default;
  Ring(Ring&& other) noexcept
      : fd(std::move(other.fd)),
        base(std::exchange(other.base, nullptr)),
        page(other.page),
        size(other.size),
        unwrapped(std::move(other.unwrapped)) {}
  Ring& operator=(Ring&&) = delete;
  ~Ring() {
    if (base != nullptr) ::munmap(base, page + size);
  }

  // Nothing for a CPU that is configured, not online.
  static Result<std::optional<Ring>> Open(int cpu, size_t size);
  void Drain(const Visit& visit, model::DropCounts& drops);
  std::span<const std::byte> RecordAt(uint64_t position, size_t length);
};

Result<std::optional<Sideband::Ring>> Sideband::Ring::Open(int cpu, size_t size) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;  // never fires by itself
  attributes.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME;
  attributes.sample_id_all = 1;
  attributes.mmap = 1;
  attributes.mmap2 = 1;
  attributes.build_id = 1;
  attributes.comm = 1;
  attributes.comm_exec = 1;
  attributes.task = 1;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  attributes.watermark = 1;
  attributes.wakeup_watermark = static_cast<uint32_t>(size / 2);

  Ring ring;
  const long fd = ::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
  const int error = errno;
  if (fd < 0 && error == ENODEV) return std::nullopt;
  if (fd < 0)
    return Fail(sources::KernelError(error, fmt::format("perf_event_open(side-band, CPU {})", cpu)));
  ring.fd = Fd(static_cast<int>(fd));
  ring.page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  ring.size = size;
  void* base = ::mmap(nullptr, ring.page + size, PROT_READ | PROT_WRITE, MAP_SHARED, ring.fd.get(), 0);
  if (base == MAP_FAILED)
    return Fail(ErrnoError(errno, fmt::format("map the side-band ring of CPU {}", cpu)));
  ring.base = static_cast<std::byte*>(base);
  return ring;
}

// A record in one piece; copied only when it wraps around the ring's end.
std::span<const std::byte> Sideband::Ring::RecordAt(uint64_t position, size_t length) {
  const size_t offset = position & (size - 1);
  const std::byte* data = base + page;
  if (offset + length <= size) return {data + offset, length};
  const size_t first = size - offset;
  unwrapped.assign(data + offset, data + size);
  unwrapped.insert(unwrapped.end(), data, data + (length - first));
  return unwrapped;
}

void Sideband::Ring::Drain(const Visit& visit, model::DropCounts& drops) {
  auto* control = reinterpret_cast<perf_event_mmap_page*>(base);
  const uint64_t head = std::atomic_ref(control->data_head).load(std::memory_order_acquire);
  uint64_t tail = control->data_tail;
  while (tail < head) {
    perf_event_header header;
    std::memcpy(&header, RecordAt(tail, sizeof header).data(), sizeof header);
    if (header.size < sizeof header || tail + header.size > head) {
      drops.Add(model::DropReason::kSidebandMalformed);
      tail = head;
      break;
    }
    SidebandEvent event;
    const Result<bool> parsed = ParseRecord(RecordAt(tail, header.size), event, drops);
    if (!parsed.has_value())
      drops.Add(model::DropReason::kSidebandMalformed);
    else if (*parsed)
      visit(std::move(event));
    tail += header.size;
  }
  std::atomic_ref(control->data_tail).store(tail, std::memory_order_release);
}

Sideband::Sideband(std::vector<Ring> rings) : rings_(std::move(rings)) {}
Sideband::Sideband(Sideband&&) noexcept = default;
Sideband& Sideband::operator=(Sideband&&) noexcept = default;
Sideband::~Sideband() = default;

Result<Sideband> Sideband::Create(size_t ring_bytes) {
  std::vector<Ring> rings;
  const auto cpus = static_cast<int>(::sysconf(_SC_NPROCESSORS_CONF));
  for (int cpu = 0; cpu < cpus; ++cpu) {
    ASSIGN_OR_RETURN(std::optional<Ring> ring, Ring::Open(cpu, ring_bytes));
    if (ring.has_value()) rings.push_back(*std::move(ring));
  }
  return Sideband(std::move(rings));
}

Status Sideband::Drain(const Visit& visit) {
  const int64_t before = drops_.Of(model::DropReason::kSidebandLost);
  for (Ring& ring : rings_) ring.Drain(visit, drops_);
  lost_ += drops_.Of(model::DropReason::kSidebandLost) - before;
  return {};
}

std::vector<int> Sideband::wake_fds() const {
  std::vector<int> fds;
  for (const Ring& ring : rings_) fds.push_back(ring.fd.get());
  return fds;
}

model::DropCounts Sideband::DrainDrops() { return drops_.Take(); }

}  // namespace gpusonde::perf
