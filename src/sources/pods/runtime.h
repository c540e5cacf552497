// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sources/pods/pod_resources.h"

namespace gpusonde::pods {

// Where containerd, CRI-O and cri-dockerd listen, and k3s's containerd.
inline constexpr std::string_view kRuntimeSockets[] = {"/run/containerd/containerd.sock",
                                                       "/run/crio/crio.sock", "/run/cri-dockerd.sock",
                                                       "/run/k3s/containerd/containerd.sock"};

// A container and its pod, as the runtime knows them. All texts are untrusted, each of at most kMaxNameBytes.
struct PodContainer {
  std::string name;
  std::string pod;
  std::string pod_namespace;
  std::string pod_uid;
  // Of the pod: name and value, sorted.
  std::vector<std::pair<std::string, std::string>> labels;

  bool operator==(const PodContainer&) const = default;
};

struct PodContainers {
  std::unordered_map<std::string, PodContainer> by_id;  // 64 hex digits
  std::set<PodName> ended_pods;  // those that have sandboxes, all of which have stopped
  int64_t omitted = 0;           // containers, pods and labels beyond the limits
};

inline constexpr size_t kMaxPodContainers = 10'000;  // a node has some hundreds; ended ones are listed too
inline constexpr size_t kMaxPodLabels = 32;          // that can be asked for

// Joins the replies of runtime.v1.RuntimeService/ListPodSandbox and ListContainers (k8s.io/cri-api,
// pkg/apis/runtime/v1/api.proto). Of a pod's labels those named in `labels` are kept. Errors: kCorrupt.
Result<PodContainers> ParseContainers(std::string_view sandboxes, std::string_view containers,
                                      std::span<const std::string> labels);

// Asks a container runtime. Errors: those of CallGrpc and ParseContainers.
Result<PodContainers> ListContainers(const std::string& socket, std::span<const std::string> labels,
                                     int64_t timeout_ns, const std::stop_token& stop = {});

}  // namespace gpusonde::pods
