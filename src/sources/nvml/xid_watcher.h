// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "sources/nvml/hub.h"
#include "sources/nvml/library.h"

namespace gpusonde::nvml {

// Waits for the driver's errors (XIDs) on a thread of its own, so that each gets the time at which it
// happened even while other NVML calls are slow.
class XidWatcher {
 public:
  // Begins to wait; publishes a notice for each device whose XIDs can't be received, or if there is no thread
  // to be had. `library` must be initialised; library and hub must outlive the watcher. `places` are the
  // devices' indices in the hub.
  XidWatcher(const Library& library, const std::vector<Device>& devices, std::vector<size_t> places,
             Hub& hub);

  // Ends the wait, within kWaitMs.
  ~XidWatcher();

  XidWatcher(const XidWatcher&) = delete;
  XidWatcher& operator=(const XidWatcher&) = delete;

 private:
  struct Watched {
    void* handle;
    size_t place;
  };
  void Run();

  const Library& library_;
  Hub& hub_;
  std::vector<Watched> watched_;
  void* set_ = nullptr;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace gpusonde::nvml
