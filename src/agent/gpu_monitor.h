// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "agent/device_table.h"
#include "agent/rows.h"
#include "base/id128.h"
#include "base/result.h"
#include "model/batch.h"
#include "sources/nvml/monitor.h"

namespace gpusonde::agent {

// Reads the state of the machine's GPUs from NVML into rows of `metrics`, on a thread of its own and without
// privileges. Not thread-safe.
class GpuMonitor {
 public:
  struct Options {
    double frequency_hz = 10;  // in [1, 10]
    std::function<Result<nvml::Library>()> open = [] { return nvml::Library::Open(); };
    // When more are known that have used a GPU, those that were not read in a round are forgotten.
    size_t max_processes = 1024;
  };

  // Starts reading. Returns nothing on a machine without NVIDIA's driver. Also adds the devices to `devices`.
  // Start it after forking: a child forked meanwhile may inherit the driver's descriptors.
  static std::optional<GpuMonitor> Start(const Options& options, std::shared_ptr<DeviceTable> devices);

  // Sets the source and clock offset of rows from now on.
  void SetSource(const Id128& source, int64_t epoch_offset_ns);

  // Returns what was read since the last call as batches, rows after the names that they refer to. Logs
  // problems.
  std::vector<model::Batch> Poll();

  // Makes the next batches repeat every process that they refer to, as a new store needs them. The collector
  // that shares the device table repeats the devices.
  void Rewrite() { processes_.clear(); }

  // Requests a stop in advance, so that Finish need not wait.
  void RequestStop() { monitor_.RequestStop(); }
  // Stops reading and returns the last batches.
  std::vector<model::Batch> Finish();

 private:
  struct KnownProcess {
    int64_t start_ticks = 0;
    Id128 id;
  };
  GpuMonitor(nvml::Monitor monitor, std::shared_ptr<DeviceTable> devices, size_t max_processes);

  void WriteDevices();
  std::optional<Id128> ProcessOf(int32_t pid);

  nvml::Monitor monitor_;
  std::shared_ptr<DeviceTable> device_table_;
  size_t max_processes_;
  std::string boot_id_;
  Id128 source_;
  int64_t epoch_offset_ns_ = 0;
  std::vector<nvml::Device> devices_;  // by their index in readings
  std::vector<Id128> device_ids_;
  std::unordered_map<int32_t, KnownProcess> processes_;          // that have a row
  std::unordered_map<int32_t, std::optional<Id128>> looked_up_;  // in this round
  Rows rows_;
};

}  // namespace gpusonde::agent
