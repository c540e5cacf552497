// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/pod_resources.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "sources/pods/grpc_client.h"
#include "sources/pods/message_reader.h"

namespace gpusonde::pods {
namespace {

// Numbers of the fields in api.proto.
namespace list_reply {
constexpr uint32_t kPods = 1;
}
namespace pod {
constexpr uint32_t kName = 1, kNamespace = 2, kContainers = 3;
}
namespace container {
constexpr uint32_t kName = 1, kDevices = 2, kDynamicResources = 5;
}
namespace devices {
constexpr uint32_t kResource = 1, kIds = 2;
}
namespace dynamic_resource {
constexpr uint32_t kClaimResources = 4;
}
namespace claim_resource {
constexpr uint32_t kCdiDevices = 1, kDriver = 2, kDevice = 4;
}
namespace cdi_device {
constexpr uint32_t kName = 1;
}

// Other devices are network cards, say.
bool IsGpu(std::string_view resource, std::string_view id) {
  return id.starts_with("GPU-") || id.starts_with("MIG-") || resource.starts_with("nvidia.com/gpu") ||
         resource.starts_with("nvidia.com/mig-") || resource.contains("gpu.nvidia.com");
}

// Collects the devices of a reply.
class Collector {
 public:
  Result<PodDevices> Read(std::string_view reply) {
    ForEach(reply, list_reply::kPods, [&](std::string_view pod) { ReadPod(pod); });
    if (malformed_)
      return Fail(ErrorCode::kCorrupt, "kubelet's reply is not a message of v1.PodResourcesLister");
    std::ranges::sort(found_.devices);
    const auto repeated = std::ranges::unique(found_.devices);
    found_.devices.erase(repeated.begin(), repeated.end());
    return std::move(found_);
  }

 private:
  template <class Visit>
  void ForEach(std::string_view message, uint32_t field, Visit visit) {
    MessageReader reader(message);
    while (reader.Next())
      if (reader.field() == field) visit(reader.bytes());
    malformed_ = malformed_ || reader.malformed();
  }
  // The last of a field that isn't repeated counts.
  std::string_view TextOf(std::string_view message, uint32_t field) {
    std::string_view text;
    ForEach(message, field, [&](std::string_view bytes) { text = bytes; });
    return text;
  }

  void ReadPod(std::string_view message) {
    pod_ = TextOf(message, pod::kName);
    namespace_ = TextOf(message, pod::kNamespace);
    ForEach(message, pod::kContainers, [&](std::string_view container) { ReadContainer(container); });
  }

  void ReadContainer(std::string_view message) {
    container_ = TextOf(message, container::kName);
    ForEach(message, container::kDevices, [&](std::string_view devices) {
      const std::string_view resource = TextOf(devices, devices::kResource);
      ForEach(devices, devices::kIds, [&](std::string_view id) { Add(resource, id); });
    });
    ForEach(message, container::kDynamicResources, [&](std::string_view resource) {
      ForEach(resource, dynamic_resource::kClaimResources,
              [&](std::string_view claimed) { ReadClaimed(claimed); });
    });
  }

  // Newer kubelets name the driver and its device; older ones only the CDI devices, "VENDOR/CLASS=DEVICE".
  void ReadClaimed(std::string_view message) {
    const std::string_view driver = TextOf(message, claim_resource::kDriver);
    const std::string_view device = TextOf(message, claim_resource::kDevice);
    if (!device.empty()) return Add(driver, device);
    ForEach(message, claim_resource::kCdiDevices, [&](std::string_view cdi) {
      const std::string_view name = TextOf(cdi, cdi_device::kName);
      const size_t equals = std::min(name.find('='), name.size());
      Add(name.substr(0, equals), name.substr(std::min(equals + 1, name.size())));
    });
  }

  void Add(std::string_view resource, std::string_view id) {
    if (!IsGpu(resource, id)) return;
    const std::array texts = {pod_, namespace_, container_, resource, id};
    const bool fits =
        std::ranges::all_of(texts, [](std::string_view text) { return text.size() <= kMaxNameBytes; });
    if (!fits || found_.devices.size() >= kMaxPodDevices) {
      ++found_.omitted;
      return;
    }
    found_.devices.push_back({.pod_namespace = std::string(namespace_),
                              .pod = std::string(pod_),
                              .container = std::string(container_),
                              .resource = std::string(resource),
                              .id = std::string(id)});
  }

  PodDevices found_;
  std::string_view pod_, namespace_, container_;
  bool malformed_ = false;
};

std::optional<int32_t> NumberOf(std::string_view text) {
  const std::optional<int32_t> number = ParseNumber<int32_t>(text);
  return number.has_value() && *number >= 0 ? number : std::nullopt;
}

}  // namespace

Result<PodDevices> ParsePodResources(std::string_view reply) { return Collector().Read(reply); }

Result<PodDevices> ListPodDevices(const std::string& socket, int64_t timeout_ns,
                                  const std::stop_token& stop) {
  ASSIGN_OR_RETURN(const std::string reply, CallGrpc({.socket = socket,
                                                      .method = "/v1.PodResourcesLister/List",
                                                      .request = {},
                                                      .timeout_ns = timeout_ns},
                                                     stop));
  return ParsePodResources(reply);
}

DeviceName DeviceNameOf(std::string_view id) {
  constexpr std::string_view kSlice = "::";  // time-slices and MPS shares of NVIDIA's device plugin
  constexpr std::string_view kDynamic = "gpu-";
  id = id.substr(0, id.find(kSlice));
  // A CDI device of a claim has the claim's UID before its name.
  for (const std::string_view prefix : {"MIG-", "GPU-"})
    if (const size_t at = id.find(prefix); at != std::string_view::npos)
      return {.uuid = std::string(id.substr(at)), .ordinal = std::nullopt};
  const size_t dynamic = id.rfind(kDynamic);
  return {.uuid = "",
          .ordinal = NumberOf(dynamic == std::string_view::npos ? id : id.substr(dynamic + kDynamic.size()))};
}

}  // namespace gpusonde::pods
