// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/queries/container_names.h"
#include "store/queries/gpu_query.h"
#include "store/queries/usage_query.h"
#include "store/store.h"
#include "usage/usage.h"

namespace gpusonde::usage {

// Names holders of devices after what their GPU time is summed by.
class HolderNamer {
 public:
  // Reads the names of containers and the labels of pods; devices are named as given. Errors: those of
  // Store::Query.
  static Result<HolderNamer> Read(store::Store& store, std::vector<store::GpuDevice> devices);

  // At most 256 bytes; empty for a holder that belongs to none.
  std::string Name(const SumBy& by, const store::HolderFacts& holder) const;

  // The names of labels, at most 100.
  const std::set<std::string>& labels() const { return labels_; }

 private:
  // The values of one label of pods.
  struct Label {
    std::map<std::string, std::string, std::less<>> by_container;       // id
    std::map<std::pair<std::string, std::string>, std::string> by_pod;  // namespace and name
  };

  std::string NameOfProcess(const SumBy& by, const store::HolderFacts& holder) const;
  std::string NameOfPod(const SumBy& by, const store::HolderFacts& holder, const store::HolderPod& pod) const;
  std::string OwnerName(const store::HolderFacts& holder, const model::CgroupOwner& owner) const;
  std::string DeviceName(const Id128& id) const;

  std::vector<store::GpuDevice> devices_;
  store::ContainerNames containers_;
  std::map<std::string, Label> by_label_;
  std::set<std::string> labels_;
};

}  // namespace gpusonde::usage
