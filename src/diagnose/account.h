// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "diagnose/time_by.h"
#include "model/metric_catalogue.h"

namespace gpusonde::diagnose {

// What the critical path of a step is doing. The states exclude each other and sum to the step's length. The
// path is that of the launch thread, and of the process that it waits for if that is known.
enum class State : uint8_t {
  kBlocked,
  kBlockedIo,
  kCpu,
  kGpuCopy,
  kGpuQueue,
  kGpuRun,
  kInterrupted,
  kIoThrottled,
  kLoader,
  kNetwork,
  kNetworkQueue,
  kPeer,
  kReclaim,
  kRunQueue,
  kRunQueueOwn,
  kSleeping,
  kStopped,
  kThrottled,
  kUnexplained,
  kWaiting,
};
inline constexpr size_t kStates = 20;

// The state's metric in the catalogue, which lists them in the same order.
constexpr model::Metric MetricOf(State state) {
  return static_cast<model::Metric>(static_cast<size_t>(model::Metric::kStepBlocked) +
                                    static_cast<size_t>(state));
}
static_assert(MetricOf(State::kWaiting) == model::Metric::kStepWaiting);
static_assert(MetricOf(State::kRunQueueOwn) == model::Metric::kStepRunQueueOwn);

// Time by state, ns; of a step, or a mean over steps.
struct Account : TimeBy<State, kStates> {
  Account& operator+=(const Account& other) {
    Add(other, 1);
    return *this;
  }
  Account& operator*=(double factor) {
    for (double& part : ns) part *= factor;
    return *this;
  }
  // The time for which something outside the program delayed it.
  double disturbed() const;
  // Clears negative rounding errors that remain when accounts were added and subtracted again.
  void DropNegative() {
    for (double& part : ns) part = std::max(part, 0.0);
  }
};

// Without State::kNetworkQueue: most of what queues there is what the job itself sends.
inline constexpr std::array kDisturbedStates = {State::kInterrupted, State::kIoThrottled, State::kReclaim,
                                                State::kRunQueue,    State::kStopped,     State::kThrottled};

inline double Account::disturbed() const {
  double sum = 0;
  for (const State state : kDisturbedStates) sum += (*this)[state];
  return sum;
}

}  // namespace gpusonde::diagnose
