// SPDX-License-Identifier: Apache-2.0
// Field values: NVLink's counters, which simulated devices have without using it, so that only faults count.
#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

constexpr uint32_t kLinks = 18;

// Null for fields that aren't simulated.
std::optional<int64_t> ValueOf(const Device& device, const gpusonde_nvml_field& field) {
  switch (field.field) {
    case GPUSONDE_NVML_FIELD_NVLINK_DATA_TX:
    case GPUSONDE_NVML_FIELD_NVLINK_DATA_RX:
      if (field.scope >= kLinks && field.scope != GPUSONDE_NVML_ALL_LINKS) return std::nullopt;
      return device.faults().nvlink_kib;
    case GPUSONDE_NVML_FIELD_NVLINK_REPLAYS:
      return device.faults().nvlink_replays;
    case GPUSONDE_NVML_FIELD_NVLINK_CRC_FLIT_ERRORS:
    case GPUSONDE_NVML_FIELD_NVLINK_CRC_DATA_ERRORS:
    case GPUSONDE_NVML_FIELD_NVLINK_RECOVERIES:
      return 0;
    default:
      return std::nullopt;
  }
}

}  // namespace
}  // namespace simgpu::nvml

using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result nvmlDeviceGetFieldValues(void* handle, int32_t count, gpusonde_nvml_field* fields) {
  return With(handle, fields, [&](simgpu::Device& device) -> Result {
    if (count < 0) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
    constexpr int32_t kWithNvlink = 8;  // the models of Ampere and Hopper are SXM boards
    for (int32_t i = 0; i < count; ++i) {
      gpusonde_nvml_field& field = fields[i];
      const std::optional<int64_t> value = ValueOf(device, field);
      const bool known = value.has_value() && device.model().compute_major >= kWithNvlink;
      field.time_us = simgpu::NowNs() / 1000;
      field.latency_us = 0;
      field.value_type = GPUSONDE_NVML_VALUE_UNSIGNED_LONG_LONG;
      field.result = known ? GPUSONDE_NVML_SUCCESS : GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
      field.value.unsigned_long = known ? static_cast<uint64_t>(*value) : 0;
    }
    return GPUSONDE_NVML_SUCCESS;
  });
}
