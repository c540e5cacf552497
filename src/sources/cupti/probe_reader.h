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

// Loads the BPF program for the inject library's USDT probes (sources/ebpf/bpf/gpu_events.bpf.c), attaches it
// and reads its ring. Detaches on a separate thread, which the destructor joins, so messages may still come
// for 0.1 s per probe. Not thread-safe.
class ProbeReader {
 public:
  // Stacks are unwound with `tables`. Errors: kPermissionDenied (names the capabilities), kUnsupported (no
  // BTF, no BPF).
  static Result<ProbeReader> Create(uint32_t ring_bytes, uint32_t bytes_per_second,
                                    const ebpf::StackTables& tables);

  static constexpr int32_t kEveryProcess = -1;
  // Groups of the library's probes.
  enum class Probes {
    kReports,    // `state` and `records`; their semaphores wake the library
    kLaunches,   // `launch`, with stacks, and `ready`, which ends the wait of a process that starts
    kSnapshots,  // `snapshot`, until EndSnapshots: the session's earlier state
  };
  // Attaches to probes in the library at `path`, for one process or all. Errors: kNotFound,
  // kPermissionDenied, kIo.
  Status Attach(int32_t pid, const std::string& path, Probes probes);
  // Gives the library a budget, a share of the program's time: the next lower of GPUSONDE_GPU_BUDGETS, or the
  // lowest. Errors as for Attach.
  Status AttachBudget(int32_t pid, const std::string& path, double budget);
  void EndSnapshots();
  // Detaches from one process; has no effect unless Attach was called for this pid.
  void Detach(int32_t pid);
  // The same, but only from the library that was at this path when it was attached to.
  void Detach(int32_t pid, const std::string& path);
  // Detaches all processes from the library that was at this path when it was attached to.
  void DetachFile(const std::string& path);
  bool AttachedTo(int32_t pid) const;

  void Drain(const std::function<void(const Decoder::Origin&, std::span<const std::byte> batch)>& visit);
  model::DropCounts DrainDrops();
  // Readable (epoll) when the ring fills up, and once for the first batch, other than a launch, after the
  // time of WakeAfter.
  int fd() const;
  // CLOCK_MONOTONIC; replaces the time of an earlier call.
  void WakeAfter(int64_t time_ns);
  // Receives no further message of any probe, and detaches from all processes; pending messages can still be
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
