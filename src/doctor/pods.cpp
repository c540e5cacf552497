// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/counted.h"
#include "base/printable.h"
#include "base/time.h"
#include "doctor/probes.h"
#include "sources/pods/pod_resources.h"
#include "sources/pods/runtime.h"

namespace gpusonde::doctor {
namespace {

constexpr int64_t kTimeoutNs = 3 * kNanosPerSecond;

Finding Unanswered(std::string_view socket, const Error& error, std::string_view absent,
                   std::string_view too_old) {
  const std::string why = fmt::format("{}: {}", socket, Printable(error.message));
  switch (error.code) {
    case ErrorCode::kNotFound:
      return Fails(why, std::string(absent));
    case ErrorCode::kPermissionDenied:
      return Fails(why, "run gpusonde as root, or let its user write to the socket");
    case ErrorCode::kUnsupported:
      return Fails(why, std::string(too_old));
    default:
      return Fails(why, "its log says more: `journalctl -u kubelet`, or -u of the container runtime");
  }
}

}  // namespace

Finding ProbeContainerRuntime(const Settings&) {
  for (const std::string_view socket : pods::kRuntimeSockets) {
    if (::access(std::string(socket).c_str(), F_OK) != 0) continue;
    const auto found = pods::ListContainers(std::string(socket), {}, kTimeoutNs);
    if (!found.has_value())
      return Unanswered(
          socket, found.error(), "start the container runtime again",
          "containerd 1.6 and CRI-O 1.20 have version 1 of the CRI; in containerd its plugin may be "
          "disabled");
    return Works(fmt::format("{} answers with {}", socket,
                             Counted(static_cast<int64_t>(found->by_id.size()), "container")));
  }
  return Fails(
      fmt::format("no container runtime listens at {}", fmt::join(pods::kRuntimeSockets, ", ")),
      "only nodes of Kubernetes have one; in a container mount its folder, or name another socket with "
      "--cri-socket");
}

Finding ProbeKubeletPodResources(const Settings&) {
  const auto found = pods::ListPodDevices(std::string(pods::kKubeletSocket), kTimeoutNs);
  if (!found.has_value())
    return Unanswered(pods::kKubeletSocket, found.error(),
                      "only nodes of Kubernetes have it; in a container mount /var/lib/kubelet/pod-resources",
                      "Kubernetes 1.20 has version 1 of this API");
  std::set<std::pair<std::string, std::string>> holders;
  for (const pods::PodDevice& device : found->devices) holders.emplace(device.pod_namespace, device.pod);
  return Works(fmt::format("kubelet answers: {} of NVIDIA allocated to {}",
                           Counted(static_cast<int64_t>(found->devices.size()), "device"),
                           Counted(static_cast<int64_t>(holders.size()), "pod")));
}

}  // namespace gpusonde::doctor
