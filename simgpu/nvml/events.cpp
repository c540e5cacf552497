// SPDX-License-Identifier: Apache-2.0
// XID events.
#include <array>

#include "simgpu/nvml/nvml.h"

namespace simgpu::nvml {
namespace {

// A client's event set. Events from before it registered are not included.
struct EventSet {
  std::array<bool, kMaxDevices> registered{};
  std::array<uint32_t, kMaxDevices> seen{};
};

// The oldest event that the set has not returned yet.
bool Next(EventSet& set, gpusonde_nvml_event* event) {
  for (uint32_t ordinal = 0; ordinal < TheMachine().device_count(); ++ordinal) {
    if (!set.registered[ordinal]) continue;
    Machine::Locked device(TheMachine(), ordinal);
    const uint32_t count = device->xid_count();
    if (count == set.seen[ordinal]) continue;
    // The device keeps the last kXids; earlier ones are lost, as in the real driver's queue.
    if (count - set.seen[ordinal] > Device::kXids) set.seen[ordinal] = count - Device::kXids;
    *event = {HandleOf(ordinal), GPUSONDE_NVML_EVENT_XID,
              static_cast<uint64_t>(device->xid(set.seen[ordinal]).code), UINT32_MAX, UINT32_MAX};
    ++set.seen[ordinal];
    return true;
  }
  return false;
}

}  // namespace
}  // namespace simgpu::nvml

using namespace simgpu::nvml;  // NOLINT(google-build-using-namespace): the API's functions are global

SIMGPU_EXPORT Result nvmlDeviceGetSupportedEventTypes(void* handle, uint64_t* types) {
  return With(handle, types, [&](simgpu::Device&) {
    *types = GPUSONDE_NVML_EVENT_XID;
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlEventSetCreate(void** set) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (set == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  *set = new EventSet;
  return GPUSONDE_NVML_SUCCESS;
}

SIMGPU_EXPORT Result nvmlDeviceRegisterEvents(void* handle, uint64_t types, void* set) {
  return With(handle, set, [&](simgpu::Device& device) -> Result {
    if ((types & ~GPUSONDE_NVML_EVENT_XID) != 0) return GPUSONDE_NVML_ERROR_NOT_SUPPORTED;
    const uint32_t ordinal = *OrdinalOf(handle);
    static_cast<EventSet*>(set)->registered[ordinal] = types != 0;
    static_cast<EventSet*>(set)->seen[ordinal] = device.xid_count();
    return GPUSONDE_NVML_SUCCESS;
  });
}

SIMGPU_EXPORT Result nvmlEventSetWait_v2(void* set, gpusonde_nvml_event* event, uint32_t timeout_ms) {
  const Result result = Ready();
  if (result != GPUSONDE_NVML_SUCCESS) return result;
  if (set == nullptr || event == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  const int64_t until_ns = simgpu::NowNs() + int64_t{timeout_ms} * 1'000'000;
  for (;;) {
    const uint32_t sequence = TheMachine().xid_sequence();
    if (Next(*static_cast<EventSet*>(set), event)) return GPUSONDE_NVML_SUCCESS;
    if (!TheMachine().WaitForXid(sequence, until_ns - simgpu::NowNs())) return GPUSONDE_NVML_ERROR_TIMEOUT;
  }
}

SIMGPU_EXPORT Result nvmlEventSetFree(void* set) {
  if (set == nullptr) return GPUSONDE_NVML_ERROR_INVALID_ARGUMENT;
  delete static_cast<EventSet*>(set);
  return GPUSONDE_NVML_SUCCESS;
}
