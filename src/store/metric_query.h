// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "model/metric_catalogue.h"
#include "model/selection.h"
#include "store/gpu_query.h"
#include "store/profile_query.h"
#include "store/store.h"

// The questions that the UI asks of the table `metrics`. They are about devices: of a selection only the time
// and the device count.
namespace gpusonde::store {

struct MetricStrip {
  GpuDevice device;
  model::Metric metric{};
  // The mean over each bucket, in the metric's unit; of throttle reasons the share of time, 0…1, in which the
  // device was slowed down. Nothing where nobody read it: a reading stands until the next one, for 2.5 s at
  // most.
  Strip strip;
  std::optional<double> most;  // natural upper end of the scale
};
// The strips of all devices with readings in the selection's time, in the order of ReadDevices; of each in
// the order in which a person wants to see them. Errors: those of Store::Query; kInvalidArgument for buckets
// < 1.
Result<std::vector<MetricStrip>> ReadMetricStrips(Store& store, const model::Selection& selection,
                                                  int buckets);

struct DeviceMark {
  enum class Kind : uint8_t { kXid, kThrottled };
  Kind kind{};
  GpuDevice device;
  int64_t from_ns = 0;
  int64_t to_ns = 0;  // of an XID the same
  // An XID's code; of throttling the reasons, bits of model::kThrottleReasons, that slow the device down.
  int64_t code = 0;
};
struct DeviceMarks {
  std::vector<DeviceMark> marks;  // by from_ns
  int64_t omitted = 0;            // beyond kMostMarks: the shortest times of throttling, then the oldest XIDs
};
inline constexpr int64_t kMostMarks = 1000;
// What happened to the devices in the selection's time. Times of throttling for the same reasons with less
// than a bucket between them are one.
Result<DeviceMarks> ReadDeviceMarks(Store& store, const model::Selection& selection, int buckets);

}  // namespace gpusonde::store
