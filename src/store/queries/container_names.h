// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/cgroup_owner.h"
#include "store/store.h"

namespace gpusonde::store {

struct ContainerName {
  std::string name;
  std::string pod;  // empty without one
  std::string pod_namespace;
};

// The names of containers, by which their processes are shown. Texts are untrusted.
class ContainerNames {
 public:
  // Errors: those of Store::Query.
  static Result<ContainerNames> Read(Store& store);

  // By its id; null for a container that nothing names.
  const ContainerName* Find(std::string_view container) const;

  // "ml/train-7", or the UID of a pod without a name; empty without a pod.
  std::string PodOf(const model::CgroupOwner& owner) const;
  // "ml/train-7/worker", "nginx"; the beginning of its id instead of an unknown name; empty without a
  // container.
  std::string ContainerOf(const model::CgroupOwner& owner) const;

 private:
  std::map<std::string, ContainerName, std::less<>> by_id_;
};

}  // namespace gpusonde::store
