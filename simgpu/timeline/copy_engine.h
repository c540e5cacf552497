// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace simgpu {

// One direction of a device's PCIe link, or its memory for copies within it: copies of all processes and
// streams run one after the other, each at full bandwidth. Lives in shared memory, guarded by the device's
// lock.
class CopyEngine {
 public:
  // How far back throughput is kept: NVML's counters cover the last 20 ms.
  static constexpr int64_t kWindowNs = 20'000'000;

  struct Span {
    int64_t start_ns;
    int64_t end_ns;
  };

  // Schedules a copy of `bytes` as soon after `ready_ns` as the engine is free. `overhead_ns` is a copy's
  // fixed cost.
  Span Place(int64_t ready_ns, int64_t bytes, double bytes_per_ns, int64_t overhead_ns);

  // The time in [from_ns, to_ns) during which copies ran, and the bytes moved. Exact for the last kRemembered
  // copies.
  int64_t BusyNs(int64_t from_ns, int64_t to_ns) const;
  int64_t BytesMoved(int64_t from_ns, int64_t to_ns) const;

 private:
  struct Copy {
    Span span;
    int64_t bytes;
  };
  static constexpr uint32_t kRemembered = 256;

  int64_t free_ns_ = 0;
  uint32_t next_ = 0;
  uint32_t padding_ = 0;
  std::array<Copy, kRemembered> last_{};
};

}  // namespace simgpu
