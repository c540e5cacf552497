// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "agent/live_agent.h"
#include "base/result.h"
#include "net/http_client.h"
#include "otlp_flags.h"
#include "sources/pods/pod_resources.h"

namespace CLI {
class App;
}

namespace gpusonde::app {

// What `up` and `agent` let the user choose about profiling a whole machine.
struct LiveFlags {
  double frequency_hz = 19;
  double nvml_hz = 1;
  double overhead = 0.005;  // a share
  double reserve_mb = 256;
  double duration_s = 0;  // 0: until a stop signal
  bool no_diagnose = false;
  std::string webhook;  // empty: none
  std::optional<net::HttpUrl> webhook_url;
  OtlpFlags otlp;
  std::string kubelet_socket{pods::kKubeletSocket};  // "none": kubelet is not asked
  std::string cri_socket;                            // "none": no runtime is asked; empty: one that is there
  std::vector<std::string> pod_labels;
};

// Adds the options to a command.
void AddLiveFlags(CLI::App& command, LiveFlags& flags);

// Call it in the command's callback: parses what the options can't check. Throws CLI::ValidationError.
void CheckLiveFlags(LiveFlags& flags);

// What the flags say for the agent; incidents are posted in the name of `machine`.
agent::LiveAgent::Options AgentOptions(const LiveFlags& flags, const std::string& machine);

// Runs the agent until a stop signal or the end of its time, then finishes it. `after_round` is called
// after each round.
Status RunAgent(agent::LiveAgent& agent, const LiveFlags& flags, const std::function<void()>& after_round);

// Makes the folder, and those above it that are missing, as $HOME/.local/state may be (mode 0700, as the XDG
// Base Directory Specification says). Errors: those of mkdir.
Status MakeFolder(const std::string& path);

}  // namespace gpusonde::app
