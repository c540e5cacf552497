// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>
#include <unordered_map>

#include "base/id128.h"
#include "model/tables/devices.h"

namespace gpusonde::agent {

// The id of the GPU with this UUID, as the driver writes it ("GPU-…").
Id128 DeviceIdOf(std::string_view uuid);

// Whether a device's name shows that simgpu made it.
bool SaysSimulated(std::string_view name);

// The GPUs as reported by programs through CUDA and by the driver through NVML; each knows something that the
// other doesn't. Not thread-safe.
class DeviceTable {
 public:
  enum class Witness { kCuda, kNvml };

  // Merges what a witness reports and returns the device's row if it has changed. CUDA numbers the devices
  // visible to a program, NVML those of the host: where both report, the ordinal and the memory are NVML's.
  std::optional<model::Device> Add(const model::Device& seen, Witness witness);

  // Whether Add of this device may be called for a program, which may claim to have any number of them.
  bool HasRoomFor(const Id128& device) const {
    return devices_.size() < kMaxDevices || devices_.contains(device);
  }

  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [id, known] : devices_) visit(known.row);
  }

 private:
  // 16 GPUs with seven MIG instances each are 128.
  static constexpr size_t kMaxDevices = 256;

  struct Known {
    model::Device row;
    bool by_nvml = false;
  };
  std::unordered_map<Id128, Known> devices_;
};

}  // namespace gpusonde::agent
