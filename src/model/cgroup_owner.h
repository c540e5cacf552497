// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/text.h"

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

// Calls visit(controllers, path) for each hierarchy in the text of /proc/PID/cgroup, whose lines are
// "id:controllers:path"; v2's is "0::path". The text is untrusted: other lines are skipped.
template <class Visit>
void ForEachCgroup(std::string_view proc_cgroup, const Visit& visit) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = TakeLine(proc_cgroup);
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second != std::string_view::npos)
      visit(line.substr(first + 1, second - first - 1), line.substr(second + 1));
  }
}

// Of the hierarchies in the text of /proc/PID/cgroup, the path that says most of the owner; where none says
// more, the cpu controller's (v1), or else that of the unified hierarchy (v2). With cgroup v1, SLURM puts
// processes into cgroups of the controllers that it is configured to use only, which are often freezer and
// devices. The text is untrusted.
std::string_view MostTellingCgroup(std::string_view proc_cgroup);

}  // namespace gpusonde::model
