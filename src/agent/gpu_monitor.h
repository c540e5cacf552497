// SPDX-License-Identifier: Apache-2.0
#pragma once

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

// The state of the machine's GPUs as NVML tells it, as rows of `metrics`: beside whatever is profiled, and
// without any privilege. Not thread-safe; the reading goes on by itself.
class GpuMonitor {
 public:
  struct Options {
    double frequency_hz = 10;  // in [1, 10]
    std::function<Result<nvml::Library>()> open = [] { return nvml::Library::Open(); };
  };

  // Starts to read. Nothing on a machine without NVIDIA's driver. Devices also become known to `devices`.
  // Forking while it reads may give the child the driver's descriptors: start it after.
  static std::optional<GpuMonitor> Start(const Options& options, std::shared_ptr<DeviceTable> devices);

  // Rows from now on are this source's.
  void BelongTo(const Id128& source, int64_t epoch_offset_ns);

  // What was read since the last time, as batches, names before what refers to them. What went wrong is
  // logged.
  std::vector<model::Batch> Poll();

  // The next batches repeat every process that they refer to, as a new store needs them. Devices are
  // repeated by whoever else writes those of the same table.
  void Rewrite() { processes_.clear(); }

  // Asks for the end, so that Finish need not wait.
  void RequestStop() { monitor_.RequestStop(); }
  // Stops reading and returns the last batches.
  std::vector<model::Batch> Finish();

 private:
  struct KnownProcess {
    int64_t start_ticks = 0;
    Id128 id;
  };
  GpuMonitor(nvml::Monitor monitor, std::shared_ptr<DeviceTable> devices);

  void WriteDevices();
  std::optional<Id128> ProcessOf(int32_t pid);

  nvml::Monitor monitor_;
  std::shared_ptr<DeviceTable> device_table_;
  std::string boot_id_;
  Id128 source_;
  int64_t epoch_offset_ns_ = 0;
  std::vector<nvml::Device> devices_;  // by their place in readings
  std::vector<Id128> device_ids_;
  std::unordered_map<int32_t, KnownProcess> processes_;          // that have a row
  std::unordered_map<int32_t, std::optional<Id128>> looked_up_;  // in this round
  Rows rows_;
};

}  // namespace gpusonde::agent
