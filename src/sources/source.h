// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "model/drops.h"
#include "sources/cupti/event.h"
#include "sources/ebpf/event.h"
#include "sources/nvml/poll_result.h"
#include "sources/perf/event.h"

namespace gpusonde::sources {

// What any source reports. All times are CLOCK_MONOTONIC.
using Event = std::variant<ebpf::RawSample, ebpf::OffCpuBegin, ebpf::OffCpuEnd, ebpf::SignalSum,
                           perf::SidebandEvent, cupti::Event, nvml::Reading, nvml::Notice>;

// An origin of events on this node. Not thread-safe.
class Source {
 public:
  // May move from the event, whose stacks and texts are valid during the call only.
  using Visit = std::function<void(Event&&)>;

  virtual ~Source() = default;

  // Visits all pending events. Those of one thread are in order; those of different threads and CPUs are not.
  // Errors: kIo.
  virtual Status Drain(const Visit& visit) = 0;

  // Descriptors that become readable (poll) when the source should be drained before the next round is due.
  virtual std::vector<int> wake_fds() const { return {}; }

  // Returns and resets the counts of events that were lost or incomplete.
  virtual model::DropCounts DrainDrops() = 0;

  // Stops reporting; pending events can still be drained.
  virtual void Stop() = 0;

 protected:
  Source() = default;
  Source(Source&&) = default;
  Source& operator=(Source&&) = default;
};

namespace internal {

struct AnyOther {
  template <class Event>
  AnyOther(const Event&) {}  // NOLINT(google-explicit-constructor): worse than any exact match
};

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <class... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace internal

// Passes each event to the function that takes its type, and ignores events that none of them takes.
template <class... Functions>
Source::Visit VisitOnly(Functions... functions) {
  return [all = internal::Overloaded{std::move(functions)..., [](internal::AnyOther) {}}](Event&& event) {
    std::visit(all, std::move(event));
  };
}

}  // namespace gpusonde::sources
