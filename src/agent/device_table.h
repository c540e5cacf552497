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

// Whether a device's name says that simgpu made it.
bool SaysSimulated(std::string_view name);

// The GPUs, as told by those who see them: programs through CUDA, and the driver through NVML. Each knows
// something that the other doesn't. Not thread-safe.
class DeviceTable {
 public:
  enum class Witness { kCuda, kNvml };

  // The device's row as it is known now, if it tells something that was not known before. CUDA counts the
  // devices that a program may see, NVML those of the host: where both tell, the ordinal and the memory are
  // NVML's.
  std::optional<model::Device> Add(const model::Device& seen, Witness witness);

  template <class Visit>
  void ForEach(Visit visit) const {
    for (const auto& [id, known] : devices_) visit(known.row);
  }

 private:
  struct Known {
    model::Device row;
    bool by_nvml = false;
  };
  std::unordered_map<Id128, Known> devices_;
};

}  // namespace gpusonde::agent
