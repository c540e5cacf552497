// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>

namespace gpusonde::diagnose {

// A step's time, ns.
struct StepTime {
  double total_ns = 0;
  double idle_ns = 0;           // of the total: waiting for external events
  double asleep_ns = 0;         // of the idle time: in a sleep that the launch thread asked for
  double others_asleep_ns = 0;  // of the idle time: in sleeps of other threads, for which it waited
  // Of the idle time: what may have been waits for requests, for known processes outside the program, or of
  // the process itself for packets of unknown origin.
  double outside_ns = 0, packets_ns = 0;
};

// Learns from clean steps whether the program habitually waits for external events between them, as a server
// waits for requests. The length of such waits says nothing about the program's speed, so they are excluded
// from its steps. Decided by how many steps wait, so that no single step decides; given up if waits turn out
// to be rare. A server that works on many requests at a time waits only when it has none: few steps wait, but
// irregularly, and for processes outside the program or for packets; or it sleeps, as one that looks for
// requests again and again. Not thread-safe.
class Habit {
 public:
  // These return true if this step changes waits() or waits_for_sleepers(): steps before it aren't comparable
  // with later ones.
  bool Learn(const StepTime& clean);
  // A step that isn't part of an incident, but may turn out to be. Of a server that is seldom without
  // requests most of those that wait are suspected.
  bool LearnSuspect(const StepTime& suspect);

  bool waits() const { return waits_; }
  // Whether the waits are, in part, for threads that sleep: requests may come from a thread that generates
  // them. Of a server that only sleeps itself, a wait for another thread that sleeps is one for its lock.
  bool waits_for_sleepers() const { return waits_ && for_sleepers_; }

 private:
  bool Update(bool shown);
  void UpdateSleepers(const StepTime& clean);
  bool IsShown() const;
  void AddRequest(const StepTime& step);
  bool HasRequests(double part) const;
  bool IsOftenIdle(double part) const;
  bool WaitsWhenEmpty() const;
  bool IdlesWhenEmpty() const;

  std::deque<StepTime> recent_;
  int64_t steps_ = 0;            // all
  int64_t waiting_ = 0;          // those that waited
  std::deque<double> requests_;  // the newest long waits that may have been for requests, ns
  std::deque<double> idle_;      // the newest long waits for external events, ns
  double total_ns_ = 0, idle_ns_ = 0, outside_ns_ = 0, packets_ns_ = 0;
  double clean_idle_ns_ = 0, clean_others_asleep_ns_ = 0;
  bool waits_ = false, for_sleepers_ = false;
  bool by_idle_time_ =
      false;  // of waits_: rare waits showed it, and not those that may have been for requests
};

}  // namespace gpusonde::diagnose
