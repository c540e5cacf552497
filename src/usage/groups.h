// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/device_account.h"
#include "store/queries/gpu_query.h"
#include "store/queries/usage_query.h"
#include "usage/usage.h"

// How the use of holders becomes groups: the same for what is read at once and for sums of hours.
namespace gpusonde::usage {

// Sums up holders by name.
class GroupsByName {
 public:
  void Add(const std::string& name, const store::HolderFacts& holder, const model::HolderUse& use,
           std::optional<double> sampled_utilization);
  void Add(const Group& group) { by_name_[group.name] += group; }

  // Falling by the GPU time that they are accountable for, equal ones by name. None are left.
  std::vector<Group> Take();

 private:
  std::map<std::string, Group> by_name_;
};

// Adds whole GPUs: the work of MIG instances counts for theirs.
void AddDevices(std::span<const store::GpuDevice> devices, Usage& usage);

}  // namespace gpusonde::usage
