// SPDX-License-Identifier: Apache-2.0
#include "simgpu/machine/models.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

namespace simgpu {
namespace {

struct Named {
  std::string_view key;
  DeviceModel model;
};

constexpr int64_t kMib = int64_t{1} << 20;

// Figures from NVIDIA's data sheets; bandwidths are those that copies reach, not the peak.
constexpr std::array kModels = {
    Named{"a100",
          {.name = "Simulated A100-SXM4-80GB",
           .uuid = {},
           .pci_bus_id = {},
           .compute_major = 8,
           .compute_minor = 0,
           .sms = 108,
           .max_threads_per_sm = 2048,
           .sm_clock_mhz = 1410,
           .idle_clock_mhz = 210,
           .memory_clock_mhz = 1593,
           .pcie_generation = 4,
           .pcie_width = 16,
           .memory_bytes = 81'920 * kMib,
           .reserved_bytes = 600 * kMib,
           .link_bytes_per_ns = 25,
           .memory_bytes_per_ns = 1'700,
           .launch_latency_ns = 3'000,
           .power = {60, 400, 400, 30, 0.10, 20, 85, 0.3}}},
    Named{"h100",
          {.name = "Simulated H100 80GB HBM3",
           .uuid = {},
           .pci_bus_id = {},
           .compute_major = 9,
           .compute_minor = 0,
           .sms = 132,
           .max_threads_per_sm = 2048,
           .sm_clock_mhz = 1980,
           .idle_clock_mhz = 345,
           .memory_clock_mhz = 2619,
           .pcie_generation = 5,
           .pcie_width = 16,
           .memory_bytes = 81'559 * kMib,
           .reserved_bytes = 560 * kMib,
           .link_bytes_per_ns = 52,
           .memory_bytes_per_ns = 2'900,
           .launch_latency_ns = 2'500,
           .power = {70, 700, 700, 28, 0.06, 20, 87, 0.3}}},
    Named{"t4",
          {.name = "Simulated T4",
           .uuid = {},
           .pci_bus_id = {},
           .compute_major = 7,
           .compute_minor = 5,
           .sms = 40,
           .max_threads_per_sm = 1024,
           .sm_clock_mhz = 1590,
           .idle_clock_mhz = 300,
           .memory_clock_mhz = 5001,
           .pcie_generation = 3,
           .pcie_width = 16,
           .memory_bytes = 15'360 * kMib,
           .reserved_bytes = 400 * kMib,
           .link_bytes_per_ns = 12,
           .memory_bytes_per_ns = 260,
           .launch_latency_ns = 4'000,
           .power = {12, 70, 70, 30, 0.75, 20, 85, 0.3}}},
};

}  // namespace

DeviceModel ModelNamed(std::string_view name, uint32_t ordinal) {
  const auto* found =
      std::find_if(kModels.begin(), kModels.end(), [&](const Named& named) { return named.key == name; });
  if (found == kModels.end())
    found =
        std::find_if(kModels.begin(), kModels.end(), [](const Named& named) { return named.key == "h100"; });
  DeviceModel model = found->model;
  std::memcpy(model.uuid, "simulated", 9);
  model.uuid[15] = static_cast<uint8_t>(ordinal + 1);
  std::snprintf(model.pci_bus_id, sizeof model.pci_bus_id, "0000:%02X:00.0",
                0x10U + 0x10U * (ordinal & 0xFU));
  return model;
}

}  // namespace simgpu
