// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace gpusonde::model {

// For whom a process runs, as the path of its cgroup says. Empty where it says nothing. Of nested containers,
// as those of kind, the innermost counts.
struct CgroupOwner {
  std::string container;  // id, 64 hex digits
  std::string runtime;    // containerd, cri-o, docker or podman; empty where the path doesn't name it
  std::string pod_uid;    // of Kubernetes, with dashes
  std::string slurm_job;  // number
  std::string service;    // systemd's unit, such as ollama.service
};

// Reads the path of a cgroup, of v1 or v2. The path is untrusted. Understood are the paths that these make:
// kubelet (pkg/kubelet/cm/pod_container_manager_linux.go) with its drivers cgroupfs and systemd, containerd,
// CRI-O, Docker, Podman, SLURM (cgroup/v1 and cgroup/v2), systemd.
CgroupOwner OwnerOfCgroup(std::string_view path);

}  // namespace gpusonde::model
