// SPDX-License-Identifier: Apache-2.0
#include "live_flags.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string_view>
#include <system_error>
#include <thread>

#include "agent/webhook.h"
#include "base/disk.h"
#include "base/time.h"
#include "command.h"
#include "sources/pods/runtime.h"
#include "sources/pods/watcher.h"
#include "stop_signal.h"
#include "values.h"

namespace gpusonde::app {

void AddLiveFlags(CLI::App& command, LiveFlags& flags) {
  command.add_option("--hz", flags.frequency_hz, "Samples per second on each CPU")
      ->capture_default_str()
      ->check(Number("HZ", 0.1, 1'000));
  command.add_option("--nvml-hz", flags.nvml_hz, "NVML readings (clocks, power, …) per second; 0: none")
      ->capture_default_str()
      ->check(Number("HZ", 1, 10, true));
  command
      .add_option("--overhead", flags.overhead,
                  "Maximum slowdown of a program by GPU profiling, in percent; see docs/sampling.md")
      ->default_str("0.5%")
      ->transform(Percentage(0.05, 5));
  command
      .add_option("--disk-reserve-mb", flags.reserve_mb,
                  "Store nothing while the disk has less free space than this; half of it always stays free")
      ->capture_default_str()
      ->check(Number("MB", 0, 1e9));
  command.add_option("--duration", flags.duration_s, "Stop after this many seconds")
      ->check(PositiveNumber("SECONDS"));
  command.add_flag("--no-diagnose", flags.no_diagnose, "Don't diagnose slow steps");
  command.add_option(
      "--webhook", flags.webhook,
      "http[s]://HOST[:PORT][/PATH] to post incidents to; docs/diagnose.md has the format [none]");
  command
      .add_option(
          "--kubelet-socket", flags.kubelet_socket,
          "Unix socket of kubelet's pod-resources API, asked which pods have which GPUs if it is there; or "
          "none")
      ->capture_default_str();
  command.add_option(
      "--cri-socket", flags.cri_socket,
      "Unix socket of the container runtime (CRI), asked for the names of pods; or none [that of "
      "containerd, CRI-O, cri-dockerd or k3s]");
  command
      .add_option("--pod-labels", flags.pod_labels,
                  "Labels of pods to keep, such as app,team; read from the container runtime [none]")
      ->delimiter(',')
      ->allow_extra_args(false);
  AddOtlpFlags(command, flags.otlp);
}

void CheckLiveFlags(LiveFlags& flags) {
  CheckOtlpFlags(flags.otlp);
  if (flags.pod_labels.size() > pods::kMaxPodLabels)
    throw CLI::ValidationError("--pod-labels", fmt::format("takes at most {} labels", pods::kMaxPodLabels));
  if (flags.webhook.empty()) return;
  const auto url = net::HttpUrl::Parse(flags.webhook);
  if (!url.has_value()) throw CLI::ValidationError("--webhook", url.error().message);
  flags.webhook_url = *url;
}

namespace {

// Null if neither kubelet nor a runtime is to be asked.
std::optional<pods::Watcher::Options> PodWatcherOptions(const LiveFlags& flags) {
  constexpr std::string_view kNone = "none";
  pods::Watcher::Options options;
  options.kubelet_socket = flags.kubelet_socket == kNone ? "" : flags.kubelet_socket;
  if (flags.cri_socket == kNone)
    options.runtime_sockets.clear();
  else if (!flags.cri_socket.empty())
    options.runtime_sockets = {flags.cri_socket};
  options.labels = flags.pod_labels;
  if (options.kubelet_socket.empty() && options.runtime_sockets.empty()) return std::nullopt;
  return options;
}

// Of the machine's CPU time that finding source lines may take in the long run.
constexpr double kLinesShare = 0.005;

}  // namespace

agent::LiveAgent::Options AgentOptions(const LiveFlags& flags, const std::string& machine) {
  std::shared_ptr<agent::Webhook> webhook;
  if (flags.webhook_url.has_value())
    webhook = std::make_shared<agent::Webhook>(
        agent::Webhook::Options{.url = *flags.webhook_url, .machine = machine});
  agent::LiveAgent::Options options;
  options.frequency_hz = flags.frequency_hz;
  options.nvml_hz = flags.nvml_hz;
  options.overhead = flags.overhead;
  options.diagnose = !flags.no_diagnose;
  options.pod_watcher = PodWatcherOptions(flags);
  options.lines = OwnLines();
  options.lines.cpu_share = kLinesShare * std::thread::hardware_concurrency();
  options.files = OwnFiles(agent::FilePriority::kBackground);
  if (webhook != nullptr) {
    options.on_incident = [webhook](const diagnose::Report& report) { webhook->Post(report); };
    options.on_warning = [webhook](const model::Warning& warning) { webhook->Post(warning); };
  }
  return options;
}

Status RunAgent(agent::LiveAgent& agent, const LiveFlags& flags, const std::function<void()>& after_round) {
  const int64_t stop_ns =
      flags.duration_s > 0 ? MonotonicNow() + static_cast<int64_t>(flags.duration_s * 1e9) : INT64_MAX;
  while (!StopRequested() && MonotonicNow() < stop_ns) {
    TRY(agent.Round());
    after_round();
  }
  return agent.Finish();
}

Status MakeFolder(const std::string& path) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
      Error error = ErrnoError(errno, "make the folder " + folder);
      TRY(CheckFolderOf(folder));
      error.message += "; make it, or name another with --state";
      return Fail(std::move(error));
    }
    if (end == std::string::npos) break;
  }
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return {};
  return Fail(ErrorCode::kInvalidArgument, path + " is not a folder; name another with --state");
}

}  // namespace gpusonde::app
