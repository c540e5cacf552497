// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <utility>
#include <vector>

#include "base/id128.h"
#include "diagnose/time_by.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {

// What a thread does.
enum class ThreadState : uint8_t {
  // These exclude each other.
  kRunning,
  kRunQueue,
  kBlockedIo,
  kBlocked,
  kWaiting,
  kSleeping,
  kNetwork,  // waiting until a packet arrived
  kStopped,  // by a signal, a tracer or a frozen cgroup
  // These are parts of them.
  kInterrupted,  // of running
  kReclaim,      // of running and blocked
  kDisplaced,    // of the run queue
};
inline constexpr size_t kThreadStates = 11, kExclusiveThreadStates = 8;

// The states in which a thread waits for something that another process does.
inline constexpr std::array kWaitStates = {ThreadState::kWaiting, ThreadState::kNetwork};

// The state whose time a metric measures; nullopt for metrics of anything but threads.
std::optional<ThreadState> ThreadStateOf(model::Metric metric);

// The time of a thread in an interval by state, ns, and by the other process that is responsible for it:
//
// - run queue: who ran instead; zero id: nobody, or unknown. For the others zero means unknown;
// - displaced: who ran on another CPU while the thread waited behind its own program;
// - waiting: who woke the thread;
// - network: who sent the packet;
// - stopped: who let the thread continue.
//
// The states that exclude each other sum to at most the length of the interval.
class ThreadTime {
 public:
  double operator[](ThreadState state) const { return states_[state]; }
  // Of the states that exclude each other.
  double total() const;
  // Calls for each other process that is responsible for time in a state: pairs of its id and that time.
  auto By(ThreadState state) const {
    return std::ranges::subrange(std::ranges::lower_bound(by_other_, state, {}, &ByOther::state),
                                 by_other_.end()) |
           std::views::take_while([state](const ByOther& entry) { return entry.state == state; }) |
           std::views::transform([](const ByOther& entry) { return std::pair(entry.other, entry.ns); });
  }
  // The time in a state for which this process is responsible.
  double By(ThreadState state, const Id128& other) const;

  // Adds time; `other` is ignored for states without one.
  void Add(ThreadState state, double ns, const Id128& other = {});
  void Add(const ThreadTime& other, double factor);
  // Adds each state's time with a factor of its own.
  void Add(const ThreadTime& other, const TimeBy<ThreadState, kThreadStates>& factors);

 private:
  struct ByOther {
    ThreadState state;
    Id128 other;
    double ns;
  };

  void AddByOther(ThreadState state, double ns, const Id128& other);

  TimeBy<ThreadState, kThreadStates> states_;
  // Sorted by state and other. Most intervals have one or none, and many intervals are stored.
  std::vector<ByOther> by_other_;
};

}  // namespace gpusonde::diagnose
