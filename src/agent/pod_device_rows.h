// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "agent/device_table.h"
#include "base/id128.h"
#include "model/batch.h"
#include "model/tables/pod_devices.h"
#include "sources/pods/pod_resources.h"

namespace gpusonde::agent {

// Writes a row when kubelet allocates a GPU to a container of a pod, and again when it takes it back. An
// allocation begins when it is first seen; while kubelet doesn't answer, it lasts. Not thread-safe.
class PodDeviceRows {
 public:
  // The table gives the device of an id that is a number.
  explicit PodDeviceRows(std::shared_ptr<const DeviceTable> devices) : devices_(std::move(devices)) {}

  // Sets the source and clock offset of rows from now on: what is allocated ends for the old source and
  // begins for the new.
  void SetSource(const Id128& source, int64_t epoch_offset_ns);

  // All that is allocated at a time (CLOCK_MONOTONIC).
  void Update(const pods::PodDevices& found, int64_t time_ns);

  // The rows since the last call.
  std::optional<model::Batch> DrainRows();

  // Makes the next rows repeat all that is allocated, as a new store needs it.
  void Rewrite();

 private:
  void Begin(const pods::PodDevice& device, int64_t time_ns);
  std::optional<Id128> DeviceOf(std::string_view name) const;

  std::shared_ptr<const DeviceTable> devices_;
  Id128 source_;
  int64_t epoch_offset_ns_ = 0;
  std::map<pods::PodDevice, model::PodDevice> allocated_;
  model::BatchBuilder<decltype(model::kPodDevices)> rows_{model::kPodDevices};
};

}  // namespace gpusonde::agent
