// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per container whose name was found. Which processes run in it follows from their cgroups
// (model/cgroup_owner.h).
struct Container {
  std::string container;
  Id128 source;
  std::string name;
  std::string pod;
  std::string pod_namespace;
  std::string pod_uid = {};
};

inline constexpr Table kContainers(
    "containers", Key{1}, "One row per container whose name was found",
    Field("container", &Container::container, "",
          "id, 64 hex digits, as it is in the cgroup of its processes"),
    Field("source", &Container::source, "", "the run that found it"),
    Field("name", &Container::name, "", "its name, in its pod if it has one"),
    Field("pod", &Container::pod, "", "name of its Kubernetes pod; empty if it has none"),
    Field("pod_namespace", &Container::pod_namespace, "", "namespace of the pod"),
    Field("pod_uid", &Container::pod_uid, "", "UID of the pod, if the container runtime was asked"));

}  // namespace gpusonde::model
