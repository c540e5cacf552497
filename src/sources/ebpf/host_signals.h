// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/drops.h"
#include "wire/host_signals.h"

namespace gpusonde::ebpf {

// What the threads of some processes did with their time, in sums over 10 ms, and who kept them from running
// (bpf/host_signals.bpf.c). Not thread-safe.
class HostSignals {
 public:
  // Of one thread; or of a process, where `tid` is 0.
  struct Sum {
    int64_t start_ns = 0;  // of the bucket, CLOCK_MONOTONIC
    int32_t pid = 0;       // as our own pid namespace numbers it, like `tid` and `other`
    int32_t tid = 0;
    int32_t other = 0;  // 0: nobody, or not known
    gpusonde_signal signal = GPUSONDE_SIGNAL_RUNNING;
    int64_t amount = 0;  // ns, bytes or segments, as wire/host_signals.h has it
  };

  // Whom the kernel saw under a pid.
  struct Other {
    std::string name;         // at most 15 bytes
    int64_t start_ticks = 0;  // since boot, in units of 10 ms (USER_HZ), as proc::ProcessInfo has it
  };

  // Loads what it takes. Nothing is attached, and nothing costs anything, before somebody is followed.
  // Errors: as CpuSampler::Create.
  static Result<HostSignals> Create();

  // This process and every descendant that it makes from now on; it may take 100 ms to begin. Errors:
  // kPermissionDenied, kUnsupported where the kernel refuses to tell of its scheduler; kOutOfSpace for too
  // many processes.
  Status Follow(int32_t pid);

  // Whether to look at what leaves the machine's network devices too, which costs some hundred nanoseconds a
  // packet that has to queue and some ten a packet that hasn't: for as long as somebody who is followed waits
  // for the network (GPUSONDE_SIGNAL_NETWORK). Whom it belongs to is known of sockets that were sent on
  // since. Errors: kPermissionDenied, kUnsupported.
  Status WatchNetwork(bool watch);

  // Hands over what was summed up since the last call. An interval is told of when it ends, in the buckets
  // that it lay in; a bucket may come in several parts. Long intervals reach back by any time, in buckets of
  // their own.
  Status Drain(const std::function<void(const Sum&)>& visit);

  // Who this is, if the kernel named it lately.
  std::optional<Other> Who(int32_t pid) const;

  // Signals that this kernel doesn't have, for a person; known once somebody is followed.
  const std::vector<std::string>& absent() const;

  model::DropCounts TakeDrops();
  void Stop();

  HostSignals(HostSignals&&) noexcept;
  HostSignals& operator=(HostSignals&&) noexcept;
  ~HostSignals();

 private:
  struct State;
  explicit HostSignals(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::ebpf
