// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/id128.h"
#include "model/table.h"

namespace gpusonde::model {

// One row per GPU that a container of a pod had allocated.
struct PodDevice {
  Id128 allocation;
  Id128 source;
  std::optional<Id128> device;
  std::string device_name;
  std::string resource;
  std::string pod;
  std::string pod_namespace;
  std::string container;
  int64_t start_ns = 0;
  std::optional<int64_t> end_ns;
};

inline constexpr Table kPodDevices(
    "pod_devices", Key{1},
    "One row per GPU that kubelet had allocated to a container of a pod, whether its processes used it or "
    "not",
    Field("allocation", &PodDevice::allocation, "", "hash of source, pod, container, device and start"),
    Field("source", &PodDevice::source, "", "the run that saw it"),
    Field("device", &PodDevice::device, "",
          "the GPU, or the MIG instance; null where the name has no UUID and no GPU has its number"),
    Field("device_name", &PodDevice::device_name, "", "as kubelet has it: GPU-…, MIG-…, GPU-…::3, gpu-0"),
    Field("resource", &PodDevice::resource, "", "nvidia.com/gpu, say, or the driver of a dynamic resource"),
    Field("pod", &PodDevice::pod, "", "name of the pod"),
    Field("pod_namespace", &PodDevice::pod_namespace, "", "namespace of the pod"),
    Field("container", &PodDevice::container, "", "name of the container in the pod"),
    Field("start_ns", &PodDevice::start_ns, "ns", "when it was first seen"),
    Field("end_ns", &PodDevice::end_ns, "ns", "when it was gone; null while it lasts"));

}  // namespace gpusonde::model
