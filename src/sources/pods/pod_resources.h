// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace gpusonde::pods {

inline constexpr std::string_view kKubeletSocket = "/var/lib/kubelet/pod-resources/kubelet.sock";

// A GPU, or a part of one, that kubelet has allocated to a container. All texts are untrusted, each of at
// most kMaxNameBytes.
struct PodDevice {
  std::string pod_namespace;
  std::string pod;
  std::string container;
  // The device plugin's ("nvidia.com/gpu", "nvidia.com/mig-1g.10gb"), or the driver of a dynamic resource
  // ("gpu.nvidia.com").
  std::string resource;
  std::string id;  // "GPU-…", "MIG-…", "GPU-…::3" of a time-slice, "gpu-0" of a dynamic resource

  auto operator<=>(const PodDevice&) const = default;
};

// Namespace and name.
using PodName = std::pair<std::string, std::string>;

struct PodDevices {
  std::vector<PodDevice> devices;  // sorted, each once
  int64_t omitted = 0;             // beyond the limits
};

// A name of Kubernetes has at most 253 bytes, that of a resource 317.
inline constexpr size_t kMaxNameBytes = 320;
inline constexpr size_t kMaxPodDevices = 4096;  // a node has some hundreds of time-slices at most

// Reads the reply of v1.PodResourcesLister/List (k8s.io/kubelet, pkg/apis/podresources/v1/api.proto), as far
// as it is about NVIDIA's GPUs: those of device plugins, and dynamic resources, which kubelets before 1.27
// don't have. Errors: kCorrupt.
Result<PodDevices> ParsePodResources(std::string_view reply);

// Asks kubelet. Errors: those of CallGrpc and ParsePodResources.
Result<PodDevices> ListPodDevices(const std::string& socket, int64_t timeout_ns,
                                  const std::stop_token& stop = {});

// Which device an id means. A time-slice means its whole GPU.
struct DeviceName {
  std::string uuid;  // "GPU-…" or "MIG-…"; empty if the id has none
  std::optional<int32_t>
      ordinal;  // instead of a UUID: of a dynamic resource, or a device plugin that is set so
};
DeviceName DeviceNameOf(std::string_view id);

}  // namespace gpusonde::pods
