// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/time.h"
#include "sources/nvml/library.h"
#include "sources/nvml/news.h"
#include "sources/nvml/questions.h"

namespace gpusonde::nvml {

// Asks all devices everything there is to ask, round by round. A device that doesn't know an answer is asked
// once; an error is counted and told once; a device that is lost is asked no more. Not thread-safe.
class Poller {
 public:
  // `library` is initialised and outlives the poller. Readings name devices by their place in `devices`.
  Poller(const Library& library, std::vector<Device> devices, std::function<int64_t()> clock = MonotonicNow);

  // One round. It takes no longer than half of `period_ns` as far as calls are quick; those that were slow
  // the last time (PCIe throughput takes 20 ms a call on real devices) share what is left of that half in
  // turns, one each round at least.
  void Round(int64_t period_ns, News& news);

  // The driver went away under the library: nothing it says is of use before it is initialised anew.
  bool library_lost() const { return library_lost_; }
  bool any_device_lost() const;

 private:
  // How it stands with one question to one device.
  struct Asked {
    bool never_again = false;
    int failures = 0;                                   // in a row
    int64_t due_ns = 0;                                 // not before this
    int64_t asked_ns = 0;                               // the last time
    int64_t took_ns = 0;                                // then
    gpusonde_nvml_result told = GPUSONDE_NVML_SUCCESS;  // the last error that was told of
  };
  struct DeviceState {
    Device device;
    bool lost = false;
    int mute_rounds = 0;  // in a row, in which it answered nothing
    Memory memory;
    std::vector<Asked> asked;
    std::vector<std::string> unknown;  // what it doesn't tell, until that is told
    int answers = 0, errors = 0;       // in this round
  };

  void Ask(size_t device, size_t question, News& news);
  void Failed(DeviceState& state, size_t question, gpusonde_nvml_result result, News& news);
  void Lose(DeviceState& state, const std::string& why, News& news);
  void EndRound(DeviceState& state, News& news);

  const Library& library_;
  std::function<int64_t()> clock_;
  std::vector<DeviceState> devices_;
  bool library_lost_ = false;
};

// "GPU 0 (NVIDIA H100)"
std::string Describe(const Device& device);

}  // namespace gpusonde::nvml
