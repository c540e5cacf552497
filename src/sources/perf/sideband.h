// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/drops.h"
#include "sources/perf/event.h"
#include "sources/source.h"

namespace gpusonde::perf {

// Parses one record of a perf ring (header included). Returns false for types that we don't use; adds lost
// records to `drops`. Errors: kCorrupt for a record shorter than its type.
Result<bool> ParseRecord(std::span<const std::byte> record, SidebandEvent& event, model::DropCounts& drops);

// Side-band events of the whole machine. Not thread-safe.
class Sideband final : public sources::Source {
 public:
  // `ring_bytes` per CPU, a power of two ≥ the page size.
  // Errors: kPermissionDenied (needs root or CAP_PERFMON), kUnavailable, kIo.
  static Result<Sideband> Create(size_t ring_bytes = size_t{512} << 10);

  // Visits SidebandEvent; does not fail.
  Status Drain(const Visit& visit) override;

  // Readable when a ring is half full; one per CPU.
  std::vector<int> wake_fds() const override;

  model::DropCounts DrainDrops() override;

  // Has no effect: the caller ignores events after its end.
  void Stop() override {}

  // Number of events lost so far; when it increases, the processes' state must be read again from /proc.
  int64_t lost() const { return lost_; }

  Sideband(Sideband&&) noexcept;
  Sideband& operator=(Sideband&&) noexcept;
  ~Sideband() override;

 private:
  struct Ring;
  explicit Sideband(std::vector<Ring> rings);
  std::vector<Ring> rings_;
  model::DropCounts drops_;
  int64_t lost_ = 0;
};

}  // namespace gpusonde::perf
