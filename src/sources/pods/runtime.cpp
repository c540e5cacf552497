// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/runtime.h"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "sources/pods/grpc_client.h"
#include "sources/pods/message_reader.h"

namespace gpusonde::pods {
namespace {

// Numbers of the fields in api.proto.
namespace cri {
constexpr uint32_t kItems = 1;                           // of both replies
constexpr uint32_t kId = 1;                              // of a sandbox and a container
constexpr uint32_t kMetadata = 2;                        // of a sandbox
constexpr uint32_t kName = 1, kUid = 2, kNamespace = 3;  // of a sandbox's metadata
constexpr uint32_t kSandboxState = 3, kSandboxLabels = 5;
constexpr uint64_t kReady = 0;  // SANDBOX_READY; not written, as protobuf leaves zeros out
constexpr uint32_t kSandbox = 2, kContainerMetadata = 3, kContainerLabels = 8;  // of a container
constexpr uint32_t kKey = 1, kValue = 2;                                        // of a label
}  // namespace cri

// kubelet puts these on containers (pkg/kubelet/types/labels.go).
constexpr std::string_view kNameLabel = "io.kubernetes.container.name", kPodLabel = "io.kubernetes.pod.name",
                           kNamespaceLabel = "io.kubernetes.pod.namespace",
                           kUidLabel = "io.kubernetes.pod.uid";

class Join {
 public:
  explicit Join(std::span<const std::string> labels) : labels_(labels) {}

  Result<PodContainers> Read(std::string_view sandboxes, std::string_view containers) {
    ForEach(sandboxes, cri::kItems, [&](std::string_view sandbox) { ReadSandbox(sandbox); });
    ForEach(containers, cri::kItems, [&](std::string_view container) { ReadContainer(container); });
    if (malformed_)
      return Fail(ErrorCode::kCorrupt, "the runtime's reply is not a message of runtime.v1.RuntimeService");
    for (const auto& [pod, runs] : runs_)
      if (!runs) found_.ended_pods.insert(pod);
    return std::move(found_);
  }

 private:
  using Visit = std::function<void(std::string_view)>;

  void ForEach(std::string_view message, uint32_t field, const Visit& visit) {
    MessageReader reader(message);
    while (reader.Next())
      if (reader.field() == field) visit(reader.bytes());
    malformed_ = malformed_ || reader.malformed();
  }
  std::string_view TextOf(std::string_view message, uint32_t field) {
    std::string_view text;
    ForEach(message, field, [&](std::string_view bytes) { text = bytes; });
    return text;
  }
  uint64_t NumberOf(std::string_view message, uint32_t field) {
    uint64_t number = 0;
    MessageReader reader(message);
    while (reader.Next())
      if (reader.field() == field) number = reader.number();
    malformed_ = malformed_ || reader.malformed();
    return number;
  }
  // False, and counted, for what is too long to be a name.
  bool Take(std::string_view text, std::string& into) {
    if (text.size() > kMaxNameBytes) {
      ++found_.omitted;
      return false;
    }
    into = text;
    return true;
  }

  void ReadSandbox(std::string_view message) {
    if (sandboxes_.size() >= kMaxPodContainers) {
      ++found_.omitted;
      return;
    }
    const std::string_view metadata = TextOf(message, cri::kMetadata);
    PodContainer pod;
    if (!Take(TextOf(metadata, cri::kName), pod.pod) || !Take(TextOf(metadata, cri::kUid), pod.pod_uid) ||
        !Take(TextOf(metadata, cri::kNamespace), pod.pod_namespace))
      return;
    // A pod that is restarted has a sandbox that has stopped, and a new one.
    bool& runs = runs_[{pod.pod_namespace, pod.pod}];
    runs = runs || NumberOf(message, cri::kSandboxState) == cri::kReady;
    ForEach(message, cri::kSandboxLabels, [&](std::string_view label) {
      const std::string_view name = TextOf(label, cri::kKey);
      if (std::ranges::find(labels_, name) == labels_.end()) return;
      std::string value;
      if (pod.labels.size() < kMaxPodLabels && Take(TextOf(label, cri::kValue), value))
        pod.labels.emplace_back(name, std::move(value));
    });
    std::ranges::sort(pod.labels);
    // A map of protobuf that names a key twice means its last value, which has no place in a sorted list.
    const auto repeated = std::ranges::unique(pod.labels, {}, &std::pair<std::string, std::string>::first);
    pod.labels.erase(repeated.begin(), repeated.end());
    std::string id;
    if (Take(TextOf(message, cri::kId), id)) sandboxes_.insert_or_assign(std::move(id), std::move(pod));
  }

  void ReadContainer(std::string_view message) {
    if (found_.by_id.size() >= kMaxPodContainers) {
      ++found_.omitted;
      return;
    }
    PodContainer container;
    if (const auto sandbox = sandboxes_.find(std::string(TextOf(message, cri::kSandbox)));
        sandbox != sandboxes_.end())
      container = sandbox->second;
    std::string id;
    if (!Take(TextOf(message, cri::kId), id) ||
        !Take(TextOf(TextOf(message, cri::kContainerMetadata), cri::kName), container.name))
      return;
    ForEach(message, cri::kContainerLabels, [&](std::string_view label) {
      const std::string_view name = TextOf(label, cri::kKey);
      const std::pair<std::string_view, std::string*> wanted[] = {{kNameLabel, &container.name},
                                                                  {kPodLabel, &container.pod},
                                                                  {kNamespaceLabel, &container.pod_namespace},
                                                                  {kUidLabel, &container.pod_uid}};
      for (const auto& [known, text] : wanted)
        if (name == known && text->empty()) Take(TextOf(label, cri::kValue), *text);
    });
    found_.by_id.insert_or_assign(std::move(id), std::move(container));
  }

  std::span<const std::string> labels_;
  std::unordered_map<std::string, PodContainer> sandboxes_;  // without the container's name
  std::map<PodName, bool> runs_;
  PodContainers found_;
  bool malformed_ = false;
};

}  // namespace

Result<PodContainers> ParseContainers(std::string_view sandboxes, std::string_view containers,
                                      std::span<const std::string> labels) {
  return Join(labels).Read(sandboxes, containers);
}

Result<PodContainers> ListContainers(const std::string& socket, std::span<const std::string> labels,
                                     int64_t timeout_ns, const std::stop_token& stop) {
  const auto ask = [&](std::string_view method) {
    return CallGrpc({.socket = socket,
                     .method = "/runtime.v1.RuntimeService/" + std::string(method),
                     .request = {},
                     .timeout_ns = timeout_ns},
                    stop);
  };
  ASSIGN_OR_RETURN(const std::string sandboxes, ask("ListPodSandbox"));
  ASSIGN_OR_RETURN(const std::string containers, ask("ListContainers"));
  return ParseContainers(sandboxes, containers, labels);
}

}  // namespace gpusonde::pods
