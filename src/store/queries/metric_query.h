// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "model/metric_catalogue.h"
#include "model/selection.h"
#include "store/queries/gpu_query.h"
#include "store/queries/profile_query.h"
#include "store/store.h"

// Queries of the UI over the table `metrics`, about devices: only the selection's time range and device
// apply.
namespace gpusonde::store {

// Readings come at least once a second: one stands until the next, for at most as long.
inline constexpr int64_t kMetricHoldNs = 2'500 * kNanosPerMilli;

// The names of metrics as SQL lists them: "'gpu.power', 'gpu.clock.sm'".
std::string ListNames(std::span<const model::Metric> metrics);

struct MetricStrip {
  GpuDevice device;
  model::Metric metric{};
  // The mean over each bucket, in the metric's unit; of throttle reasons the share of time, 0…1, in which the
  // device was slowed down. Null where there was no reading: a value holds until the next
  // one, for at most 2.5 s.
  Strip strip;
  std::optional<double> most;  // natural upper end of the scale
};
// The strips of all devices with readings in the selection's time range, in the order of ReadDevices, then in
// display order of the metrics. Errors: those of Store::Query; kInvalidArgument for buckets
// < 1.
Result<std::vector<MetricStrip>> ReadMetricStrips(Store& store, const model::Selection& selection,
                                                  int buckets);

struct MetricMean {
  Id128 device;
  model::Metric metric{};
  double mean = 0;  // over the readings, which come at equal intervals, in the metric's unit
};
// Of each device with readings in the selection's time range; of gauges of whole devices. Errors: those of
// Store::Query.
Result<std::vector<MetricMean>> ReadMetricMeans(Store& store, const model::Selection& selection,
                                                std::span<const model::Metric> metrics);

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
  int64_t omitted = 0;            // beyond kMaxMarks: the shortest throttling, then the oldest XIDs
};
inline constexpr int64_t kMaxMarks = 1000;
// XIDs and throttling of the devices in the selection's time range. Intervals of throttling for the same
// reasons are merged when less than a bucket lies between them.
Result<DeviceMarks> ReadDeviceMarks(Store& store, const model::Selection& selection, int buckets);

}  // namespace gpusonde::store
