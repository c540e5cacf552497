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

// The side-band records of perf_event_open(2): mappings, forks, execs and exits of processes. The kernel
// writes each before the process continues, so that even short-lived mappings are reported.
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

// A new process (pid differs from parent_pid) or thread; it has the name of the thread that created it.
struct ForkEvent {
  int32_t pid = 0;
  int32_t tid = 0;
  int32_t parent_pid = 0;
  int32_t parent_tid = 0;  // 0: not known
};

// A thread ended; a process has ended when its last thread has.
struct ExitEvent {
  int32_t pid = 0;
  int32_t tid = 0;
};

struct SidebandEvent {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  std::variant<MapEvent, CommEvent, ForkEvent, ExitEvent> what;
};

// Parses one record of a perf ring (header included). Returns false for types that we don't use; adds lost
// records to `drops`. Errors: kCorrupt for a record shorter than its type.
Result<bool> ParseRecord(std::span<const std::byte> record, SidebandEvent& event, model::DropCounts& drops);

// Side-band events of the whole machine. Not thread-safe.
class Sideband {
 public:
  // `ring_bytes` per CPU, a power of two ≥ the page size.
  // Errors: kPermissionDenied (needs root or CAP_PERFMON), kUnavailable, kIo.
  static Result<Sideband> Create(size_t ring_bytes = size_t{512} << 10);

  // Appends all pending events to `events`. Those of one CPU are in order; those of several are not.
  void Drain(std::vector<SidebandEvent>& events);

  // Readable (poll) when a ring is half full; one per CPU.
  std::vector<int> wake_fds() const;

  model::DropCounts TakeDrops();

  // Number of events lost so far; when it increases, the processes' state must be read again from /proc.
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
