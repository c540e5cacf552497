// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace gpusonde::proc {

struct ContainerName {
  std::string name;
  std::string pod;            // of Kubernetes; empty without one
  std::string pod_namespace;  // of the pod
};

// The names of a container of this machine, by its id of 64 hex digits; nullopt if they are unknown. Read
// are the links that kubelet makes to logs, /var/log/containers/POD_NAMESPACE_NAME-ID.log
// (pkg/kubelet/kuberuntime/legacy.go), which need neither its API nor a client of the runtime, and Docker's
// /var/lib/docker/containers/ID/config.v2.json. Names are untrusted. `root` is the folder of the machine's
// file system: "" but for tests and agents in containers.
std::optional<ContainerName> FindContainerName(std::string_view id, const std::string& root = "");

}  // namespace gpusonde::proc
