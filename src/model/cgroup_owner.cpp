// SPDX-License-Identifier: Apache-2.0
#include "model/cgroup_owner.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/ascii.h"

namespace gpusonde::model {
namespace {

constexpr size_t kContainerIdLength = 64;

bool IsHex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool IsNumber(std::string_view text) { return !text.empty() && std::ranges::all_of(text, IsDigit); }

bool Consume(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// A UID of a pod: a UUID, or 32 hex digits of a static pod. systemd's names of slices have '_' for '-'.
std::string PodUid(std::string_view text) {
  std::string uid(text);
  std::ranges::replace(uid, '_', '-');
  std::string digits = uid;
  std::erase(digits, '-');
  return digits.size() == 32 && IsHex(digits) ? uid : std::string();
}

// "pod<uid>", "kubepods-pod<uid>.slice", "kubepods-burstable-pod<uid>.slice".
std::string PodUidOf(std::string_view component) {
  if (component.ends_with(".slice")) component.remove_suffix(std::string_view(".slice").size());
  if (component.starts_with("kubepods")) {
    const size_t pod = component.find("-pod");
    if (pod == std::string_view::npos) return {};
    component.remove_prefix(pod + 1);
  }
  return Consume(component, "pod") ? PodUid(component) : std::string();
}

struct ContainerId {
  std::string_view id, runtime;
};

// "<id>", "<runtime's prefix>-<id>.scope", or containerd's "<slice>:cri-containerd:<id>".
ContainerId ContainerOf(std::string_view component, std::string_view parent) {
  if (component.ends_with(".scope")) component.remove_suffix(std::string_view(".scope").size());
  std::string_view runtime;
  if (const size_t colon = component.rfind(":cri-containerd:"); colon != std::string_view::npos) {
    component.remove_prefix(colon + std::string_view(":cri-containerd:").size());
    runtime = "containerd";
  }
  constexpr std::pair<std::string_view, std::string_view> kPrefixes[] = {{"cri-containerd-", "containerd"},
                                                                         {"nerdctl-", "containerd"},
                                                                         {"crio-", "cri-o"},
                                                                         {"docker-", "docker"},
                                                                         {"libpod-", "podman"}};
  for (const auto& [prefix, name] : kPrefixes)
    if (Consume(component, prefix)) runtime = name;
  if (component.size() != kContainerIdLength || !IsHex(component)) return {};
  if (runtime.empty() && parent == "docker") runtime = "docker";
  if (runtime.empty() && parent == "libpod_parent") runtime = "podman";
  return {component, runtime};
}

}  // namespace

CgroupOwner OwnerOfCgroup(std::string_view path) {
  CgroupOwner owner;
  std::string_view parent;
  bool in_slurm = false;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    std::string_view component = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (component.empty()) continue;
    // "slurm", "slurm_NODE", "slurmstepd.scope", "NODE_slurmstepd.scope".
    in_slurm = in_slurm || component.starts_with("slurm") || component.ends_with("_slurmstepd.scope");
    // containerd without slices of its own names the pod's slice within the container's component.
    if (std::string uid = PodUidOf(component.substr(0, component.find(':'))); !uid.empty()) {
      owner.pod_uid = std::move(uid);
      owner.container.clear();
    }
    if (const ContainerId container = ContainerOf(component, parent); !container.id.empty()) {
      owner.container = container.id;
      owner.runtime = container.runtime;
    }
    std::string_view job = component;
    if (in_slurm && Consume(job, "job_") && IsNumber(job)) owner.slurm_job = job;
    if (component.ends_with(".service")) owner.service = component;
    parent = component;
  }
  return owner;
}

std::string_view MostTellingCgroup(std::string_view proc_cgroup) {
  const auto says = [](std::string_view path) {
    const CgroupOwner owner = OwnerOfCgroup(path);
    return (owner.container.empty() ? 0 : 1) + (owner.pod_uid.empty() ? 0 : 1) +
           (owner.slurm_job.empty() ? 0 : 1);
  };
  std::string_view unified, cpu, telling;
  int most = 0;
  ForEachCgroup(proc_cgroup, [&](std::string_view controllers, std::string_view path) {
    if (controllers.empty()) unified = path;
    if (controllers == "cpu" || controllers.starts_with("cpu,") || controllers.ends_with(",cpu")) cpu = path;
    if (const int said = says(path); said > most) {
      most = said;
      telling = path;
    }
  });
  const std::string_view usual = cpu.empty() ? unified : cpu;
  return most > says(usual) ? telling : usual;
}

}  // namespace gpusonde::model
