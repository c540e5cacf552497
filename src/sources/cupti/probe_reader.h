// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "model/drops.h"
#include "sources/cupti/decoder.h"
#include "sources/ebpf/stack_tables.h"

namespace gpusonde::cupti {

// The kernel program at the inject library's USDT probes (sources/ebpf/bpf/gpu_events.bpf.c). Not
// thread-safe.
class ProbeReader {
 public:
  // Stacks are taken as `tables` say. Errors: kPermissionDenied (who may), kUnsupported (no BTF, no BPF).
  static Result<ProbeReader> Create(uint32_t ring_bytes, uint32_t bytes_per_second,
                                    const ebpf::StackTables& tables);

  static constexpr int32_t kEveryProcess = -1;
  // Which of the library's probes.
  enum class Probes {
    kReports,    // all that needs no stack; their semaphores wake the library
    kLaunches,   // with stacks; a process that starts is told that it need not wait any more
    kSnapshots,  // until EndSnapshots: what was reported earlier in the session
  };
  // Attaches to probes in the library at `path`, for one process or all. Errors: kNotFound,
  // kPermissionDenied, kIo.
  Status Attach(int32_t pid, const std::string& path, Probes probes);
  void EndSnapshots();
  // Of one process; nothing when it was not attached to by itself.
  void Detach(int32_t pid);
  bool AttachedTo(int32_t pid) const;

  void Drain(const std::function<void(const Decoder::Origin&, std::span<const std::byte> batch)>& visit);
  model::DropCounts TakeDrops();
  // Readable (epoll) when the ring fills up, and once by what comes after WakeAfter's time but launches.
  int fd() const;
  // CLOCK_MONOTONIC; takes the place of an earlier call's.
  void WakeAfter(int64_t time_ns);
  // Detaches from all, on a thread of its own that is waited for on destruction; what waits can still be
  // drained.
  void Stop();

  ProbeReader(ProbeReader&&) noexcept;
  ProbeReader& operator=(ProbeReader&&) noexcept;
  ~ProbeReader();

 private:
  struct State;
  explicit ProbeReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::cupti
