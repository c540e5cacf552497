// SPDX-License-Identifier: Apache-2.0
// Replies of kubelet's pod-resources API and of container runtimes. Of those, sandboxes and containers are in
// one input: the first byte says where the second begins.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "sources/pods/pod_resources.h"
#include "sources/pods/runtime.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace gpusonde::pods;  // NOLINT(google-build-using-namespace): a program of its own
  const std::string_view reply(reinterpret_cast<const char*>(data), size);
  if (const auto found = ParsePodResources(reply); found.has_value()) {
    if (found->devices.size() > kMaxPodDevices || !std::ranges::is_sorted(found->devices)) std::abort();
    for (const PodDevice& device : found->devices)
      if (const DeviceName name = DeviceNameOf(device.id); !name.uuid.empty() && name.ordinal.has_value())
        std::abort();
  }
  if (reply.empty()) return 0;
  const std::string_view both = reply.substr(1);
  const size_t first = std::min<size_t>(data[0], both.size());
  const std::vector<std::string> labels = {"app", "team"};
  if (const auto found = ParseContainers(both.substr(0, first), both.substr(first), labels);
      found.has_value())
    for (const auto& [id, container] : found->by_id)
      if (id.size() > kMaxNameBytes || container.labels.size() > labels.size()) std::abort();
  return 0;
}
