// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "sources/nvml/library.h"
#include "sources/nvml/poll_result.h"
#include "sources/nvml/queries.h"

namespace gpusonde::nvml {

// Runs all queries on all devices, round by round. A query that a device doesn't support runs once;
// an error is counted each time and reported once; a lost device is no longer polled. Not thread-safe.
class Poller {
 public:
  // `library` must be initialised and outlive the poller. Reading::device is an index into `devices`.
  Poller(const Library& library, std::vector<Device> devices, std::function<int64_t()> clock = MonotonicNow);

  // Polls one round, in at most half of `period_ns` if calls are fast. Calls that were slow the last time
  // (PCIe throughput takes 20 ms on real devices) take turns in the remaining time of that half, at least one
  // per round.
  void Round(int64_t period_ns, PollResult& polled);

  // The driver was unloaded: the library must be initialised again before it can be used.
  bool library_lost() const { return library_lost_; }
  bool any_device_lost() const;

 private:
  // State of one query on one device.
  struct QueryState {
    bool never_again = false;
    int failures = 0;                                       // in a row
    int64_t due_ns = 0;                                     // when to run next
    int64_t started_ns = 0;                                 // when it ran last
    int64_t took_ns = 0;                                    // duration of the last call
    gpusonde_nvml_result reported = GPUSONDE_NVML_SUCCESS;  // the last error that was reported
  };
  struct DeviceState {
    Device device;
    bool lost = false;
    int silent_rounds = 0;  // in a row, without any result
    DeviceCache cache;
    std::vector<QueryState> queries;
    std::vector<std::string> unsupported;  // queries, until they are reported
    int successes = 0, errors = 0;         // in this round
  };

  void Run(size_t device, size_t query, PollResult& polled);
  void Failed(DeviceState& state, size_t query, gpusonde_nvml_result result, PollResult& polled);
  void Lose(DeviceState& state, const std::string& why, PollResult& polled);
  void EndRound(DeviceState& state, PollResult& polled);

  const Library& library_;
  std::function<int64_t()> clock_;
  std::vector<DeviceState> devices_;
  bool library_lost_ = false;
};

// "GPU 0 (NVIDIA H100)"
std::string Describe(const Device& device);

}  // namespace gpusonde::nvml
