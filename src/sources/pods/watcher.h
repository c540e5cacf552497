// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "sources/pods/pod_resources.h"
#include "sources/pods/runtime.h"

namespace gpusonde::pods {

// Asks kubelet which pods have which GPUs, and the container runtime for the names and labels of containers,
// on a thread of its own, so that a server that hangs doesn't delay the caller. Either socket may be missing,
// and may come and go. When one stops answering, or answers again, this is logged once; its last answer stays
// valid. Thread-safe.
class Watcher {
 public:
  struct Options {
    std::string kubelet_socket{kKubeletSocket};  // empty: not asked
    // The first that exists is asked.
    std::vector<std::string> runtime_sockets{std::begin(kRuntimeSockets), std::end(kRuntimeSockets)};
    std::vector<std::string> labels;  // of pods, to be kept; at most kMaxPodLabels
    int64_t period_ns = 10 * kNanosPerSecond;
    int64_t timeout_ns = 3 * kNanosPerSecond;
    // After PollSoon, the minimum time between two requests.
    int64_t urgent_interval_ns = kNanosPerSecond;
    // A server that fails is asked again after a period, then after twice as long each time, up to this.
    int64_t longest_retry_ns = 300 * kNanosPerSecond;
  };

  // Starts asking. Null, with a warning in the log, if there is no thread to be had. Call it after forking.
  static std::unique_ptr<Watcher> Start(Options options);

  // What kubelet said since the last call, and when (CLOCK_MONOTONIC); null if nothing new. Without the pods
  // that have ended, as the runtime says: kubelets before Kubernetes 1.34 list them until they are deleted.
  struct DevicesAt {
    PodDevices found;
    int64_t time_ns = 0;
  };
  std::optional<DevicesAt> DrainDevices();
  // What the runtime said since the last call; null if nothing new.
  std::optional<PodContainers> DrainContainers();

  // Asks again soon, as a container has appeared.
  void PollSoon();

  ~Watcher();

 private:
  struct State;
  explicit Watcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace gpusonde::pods
