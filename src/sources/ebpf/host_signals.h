// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/drops.h"
#include "sources/source.h"

namespace gpusonde::ebpf {

// The time that threads of target processes spend in each state, in sums over 10 ms, and which processes kept
// them from running (bpf/host_signals.bpf.c). Not thread-safe.
class HostSignals final : public sources::Source {
 public:
  // The process that the kernel last saw with a pid.
  struct Other {
    std::string name;         // at most 15 bytes
    int64_t start_ticks = 0;  // since boot, in units of 10 ms (USER_HZ), as in proc::ProcessInfo
  };

  // Loads the BPF programs. They are attached, and cost anything, only once a process is followed.
  // `ring_bytes`, rounded up to a power of two of pages, hold 40 bytes for each part of a sum that is
  // reported between two calls of Drain; parts without room take more time. Errors: as CpuSampler::Create.
  static Result<HostSignals> Create(uint32_t ring_bytes = uint32_t{1} << 20);

  // Follows this process, and the descendants that it creates from now on, from at most 100 ms later. Errors:
  // kPermissionDenied, kUnsupported if the programs can't be attached to the scheduler; kOutOfSpace for too
  // many processes.
  Status Follow(int32_t pid);

  // Also observes packets that leave through network devices, or stops to. It costs about 100 ns for a packet
  // that has to queue and 10 ns for others, so enable it only while a followed process waits for the network
  // (GPUSONDE_SIGNAL_NETWORK). A packet's process is known if its socket has sent since. Errors:
  // kPermissionDenied, kUnsupported.
  Status WatchNetwork(bool watch);

  // Visits SignalSum, the sums since the last call. An interval is added when it ends, split over the buckets
  // that it covers. A bucket may be reported in several parts, and a long interval adds to buckets that lie
  // far back.
  Status Drain(const Visit& visit) override;

  // The process with this pid, if the kernel has named it recently.
  std::optional<Other> FindProcess(int32_t pid) const;

  // The names of signals that this kernel lacks; known once a process is followed.
  const std::vector<std::string>& absent() const;

  model::DropCounts DrainDrops() override;
  void Stop() override;

  HostSignals(HostSignals&&) noexcept;
  HostSignals& operator=(HostSignals&&) noexcept;
  ~HostSignals() override;

 private:
  struct State;
  explicit HostSignals(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::ebpf
