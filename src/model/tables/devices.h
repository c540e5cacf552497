// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per GPU, and per MIG instance.
struct Device {
  Id128 device;
  Id128 source;
  int32_t ordinal = 0;
  std::string uuid;
  std::string name;
  bool simulated = false;
  std::optional<int32_t> sm_count;
  std::optional<int64_t> memory_bytes;
  std::optional<std::string> pci_bus;
  // Of a MIG instance.
  std::optional<Id128> parent;
  std::optional<int32_t> gpu_instance;
  std::optional<int32_t> compute_instance;
};

inline constexpr Table kDevices(
    "devices", Key{1}, "One row per GPU, and per MIG instance",
    Field("device", &Device::device, "", "hash of the UUID"),
    Field("source", &Device::source, "", "the run that reported it"),
    Field("ordinal", &Device::ordinal, "", "index on its host"),
    Field("uuid", &Device::uuid, "", "UUID as the driver reports it"),
    Field("name", &Device::name, "", "marketing name"),
    Field("simulated", &Device::simulated, "", "true for a device that simgpu made"),
    Field("sm_count", &Device::sm_count, "", "streaming multiprocessors"),
    Field("memory_bytes", &Device::memory_bytes, "bytes", "device memory"),
    Field("pci_bus", &Device::pci_bus, "", "PCI address"),
    Field("parent", &Device::parent, "", "the GPU that a MIG instance is a part of; null for a GPU"),
    Field("gpu_instance", &Device::gpu_instance, "", "id of a MIG instance's GPU instance"),
    Field("compute_instance", &Device::compute_instance, "", "id of its compute instance"));

}  // namespace gpusonde::model
