// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/drops.h"

// What the kernel tells about processes by itself: the side-band records of perf_event_open(2), written
// before the process goes on, so that no mapping is missed however short its life.
namespace gpusonde::perf {

// A new executable mapping of a file, the vDSO, or anonymous memory.
struct MapEvent {
  int32_t pid = 0;
  uint64_t start = 0;
  uint64_t length = 0;
  uint64_t file_offset = 0;
  std::vector<uint8_t> build_id;  // empty where the file has none
  std::string path;               // as the process sees it; "//anon" for anonymous memory, "[vdso]"
};

// A thread's new name; with `exec`, the process has become another program and its old mappings are gone.
struct CommEvent {
  int32_t pid = 0;
  int32_t tid = 0;
  bool exec = false;
  std::string name;
};

// A new process (pid differs from parent_pid) or thread, with the name of the thread that made it.
struct ForkEvent {
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t parent_pid = 0;
  int32_t parent_tid = 0;  // 0: not known
};

// A thread ended; the process did when its last thread has.
struct ExitEvent {
  int32_t pid = 0;
  int32_t tid = 0;
};

struct SidebandEvent {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::variant<MapEvent, CommEvent, ForkEvent, ExitEvent> what;
};

// Reads one record of a perf ring (header included). Returns false for kinds that mean nothing to us; adds to
// `drops` what the kernel lost. Errors: kCorrupt for a record shorter than its kind.
Result<bool> ParseRecord(std::span<const std::byte> record, SidebandEvent& event, model::DropCounts& drops);

// Side-band events of the whole machine. Not thread-safe.
class Sideband {
 public:
  // `ring_bytes` per CPU, a power of two ≥ the page size.
  // Errors: kPermissionDenied (who may: root or CAP_PERFMON), kUnavailable, kIo.
  static Result<Sideband> Create(size_t ring_bytes = size_t{512} << 10);

  // Appends what waits to `events`; of one CPU in order, of several not.
  void Drain(std::vector<SidebandEvent>& events);

  // Readable (poll) when a ring is half full; one per CPU.
  std::vector<int> wake_fds() const;

  model::DropCounts TakeDrops();

  // Events lost so far: when that rises, what the events told of is to be looked at anew.
  int64_t lost() const { return lost_; }

  Sideband(Sideband&&) noexcept;
  Sideband& operator=(Sideband&&) noexcept;
  ~Sideband();

 private:
  struct Ring;
  explicit Sideband(std::vector<Ring> rings);
  std::vector<Ring> rings_;
  model::DropCounts drops_;
  int64_t lost_ = 0;
};

}  // namespace gpusonde::perf
