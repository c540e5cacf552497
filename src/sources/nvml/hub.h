// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "sources/nvml/library.h"
#include "sources/nvml/poll_result.h"

namespace gpusonde::nvml {

// Passes readings and notices from the reading threads to the consumer. Thread-safe.
class Hub {
 public:
  // The index of each of `found` among all devices ever found, by UUID; new devices are added.
  std::vector<size_t> PlacesOf(std::span<const Device> found);
  std::vector<Device> devices() const;

  // Appends what was polled, in whose readings `device` is an index into devices().
  void Publish(PollResult polled);
  PollResult Drain();

  void Stop();
  bool stopping() const;
  // False at once when Stop is or was called.
  bool Sleep(int64_t duration_ns);

  // The reading thread calls MarkDone at its end. WaitUntilDone waits for that; it returns false on timeout.
  void MarkDone();
  bool WaitUntilDone(int64_t longest_ns);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Device> devices_;
  PollResult result_;
  bool stopping_ = false;
  bool done_ = false;
};

}  // namespace gpusonde::nvml
