// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <type_traits>

#include "base/disk.h"
#include "base/fd.h"
#include "command.h"
#include "fleet/kernel_stream.h"
#include "fleet/simulator/simulator.h"
#include "messages.h"
#include "stop_signal.h"
#include "usage.h"
#include "values.h"

namespace gpusonde::app {

void AddFleetCatalog(CLI::App& fleet, int& exit_status);
void AddFleetIdentify(CLI::App& fleet, int& exit_status);
void AddFleetServices(CLI::App& fleet, int& exit_status);
void AddFleetSetup(CLI::App& fleet, int& exit_status);

namespace {

constexpr const char* kFleetFooter = R"(
Simulates a fleet in one process: every report is really encrypted, signed, verified, added and released; time and
the devices' applications, made from kernel streams of real programs, are simulated. docs/fleet/simulator.md
explains the results.

  gpusonde fleet simulate
  gpusonde fleet simulate --devices 100000 --hours 24 --html fleet.html
  gpusonde fleet simulate --format json | jq '.runs[0].hours[-1]'
  gpusonde fleet simulate --reports both --devices 2000 --groups 1 --cohorts 1)";

struct FleetOptions {
  fleet::Parameters parameters;
  std::string reports = "masks";
  std::string format = "text";
  std::string output;
  std::string html;
  std::string streams;
  int64_t dead_hour = -1;
};

// A progress line on standard error, rewritten in place; shown only on a terminal.
class ProgressBar {
 public:
  ProgressBar() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ~ProgressBar() {
    if (shown_) PrintTo(stderr, "\r\033[K");
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void Show(std::string_view what, double share) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now - last_ < std::chrono::milliseconds(100)) return;
    last_ = now;
    constexpr int kWidth = 40;
    const int full = static_cast<int>(std::clamp(share, 0.0, 1.0) * kWidth);
    PrintTo(stderr, "\r\033[K{:<20} [{:#<{}}{:<{}}] {:3.0f} %", what, "", full, "", kWidth - full,
            100 * share);
    std::fflush(stderr);
  }

 private:
  bool shown_;
  std::chrono::steady_clock::time_point last_;
};

Status WriteResult(const std::string& path, const std::string& text) {
  if (path.empty()) return WriteAll(STDOUT_FILENO, std::as_bytes(std::span(text)));
  return WriteFileAtomically(path, text);
}

// Before a simulation that may take hours.
Status CheckOutput(std::string_view option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} {} is a folder; give a file name", option, path));
  return CheckFolderOf(path);
}

Status SimulateFleet(FleetOptions& options) {
  TRY(CheckOutput("-o", options.output));
  TRY(CheckOutput("--html", options.html));
  if (!options.html.empty() && options.html == options.output)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("-o and --html both name {}; give two files", options.html));
  fleet::Parameters& parameters = options.parameters;
  using fleet::ReportKind;
  if (options.reports == "bfv") parameters.reports = {ReportKind::kBfv};
  if (options.reports == "both") parameters.reports = {ReportKind::kMasked, ReportKind::kBfv};
  if (options.dead_hour >= 0) parameters.dead_hour = static_cast<uint32_t>(options.dead_hour);
  if (parameters.threads == 0)
    parameters.threads = static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
  ASSIGN_OR_RETURN(
      const auto streams,
      fleet::ReadKernelStreams(options.streams.empty() ? fleet::KernelStreamFolder() : options.streams));
  CatchStopSignals();
  fleet::Simulated simulated;
  {
    ProgressBar bar;
    ASSIGN_OR_RETURN(simulated,
                     fleet::Simulate(parameters, streams, [&](std::string_view what, double share) {
                       bar.Show(what, share);
                       return !StopRequested();
                     }));
  }
  const Status written = WriteResult(
      options.output, options.format == "json" ? fleet::ToJson(simulated) : fleet::ToText(simulated));
  // Even if that failed: one of the two is better than none.
  if (!options.html.empty()) TRY(WriteFileAtomically(options.html, fleet::ToHtml(simulated)));
  return written;
}

template <class T>
constexpr int64_t MaxOf() {
  return sizeof(T) < sizeof(int64_t) ? static_cast<int64_t>(std::numeric_limits<T>::max()) : kAnyWhole;
}

void AddNumbers(CLI::App& command, fleet::Parameters& p) {
  // The simulator itself rejects values that it can't use.
  const auto add = [&]<class T>(const char* name, T& value, const char* what) {
    command.add_option(name, value, what)
        ->capture_default_str()
        ->check(std::is_integral_v<T> ? WholeNumber("N", 0, MaxOf<T>()) : Number("N", 0, 1e9));
  };
  add("--devices", p.devices, "Devices of the fleet");
  add("--hours", p.hours, "Simulated hours; reports are made and released each hour");
  add("--seed", p.seed, "The same seed, the same fleet");
  add("--applications", p.applications, "Applications in the catalog");
  add("--unknown-applications", p.unknown_applications, "Applications that are not in the catalog");
  add("--unknown-share", p.unknown_share, "Share of jobs that run an unknown application");
  add("--zipf", p.zipf, "Exponent of the applications' popularity");
  add("--load", p.load, "Share of devices that are busy");
  add("--job-hours", p.job_hours, "Mean duration of a job");
  add("--churn", p.churn, "Share of devices replaced each hour");
  add("--groups", p.groups, "Number of sampled groups of characteristics, 1 to 8");
  add("--cohorts", p.cohorts, "Cohorts per group and page");
  add("--decryptors", p.decryptors, "Number of decryptors; one honest one is enough");
  add("--min-reports", p.min_reports, "Smallest cohort whose sum is released");
  add("--epsilon", p.epsilon, "Privacy budget of a device, over all hours");
  add("--cheats", p.cheats, "Devices that corrupt sums, sign wrongly or report twice");
  add("--private-queries", p.private_queries, "Private identifications to really compute each hour");
  add("--node-cores", p.node_cores, "CPU cores per GPU of a node, to compute the overhead");
  add("--servers", p.servers, "Cores of the aggregator, to compute latencies");
}

void AddSimulate(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<FleetOptions>();
  options->parameters.threads = 0;
  CLI::App* command = fleet.add_subcommand("simulate", "Simulate a fleet of devices with private reports");
  command->footer(kFleetFooter);
  AddNumbers(*command, options->parameters);
  command
      ->add_option("--dead-hour", options->dead_hour,
                   "The hour, counted from 0, in which one decryptor doesn't answer")
      ->check(WholeNumber("N", 0, std::numeric_limits<int32_t>::max()));
  command
      ->add_option("--reports", options->reports,
                   "How reports are encrypted: masks, bfv (as in Penrose) or both")
      ->capture_default_str()
      ->check(OneOf({"masks", "bfv", "both"}));
  command
      ->add_option("--streams", options->streams,
                   "Folder of kernel streams; default: the ones installed with gpusonde")
      ->check(Path());
  command->add_option("--threads", options->parameters.threads, "Default: one per usable core")
      ->check(WholeNumber("N", 1, 1024));
  command->add_option("--format", options->format, "text or json")
      ->capture_default_str()
      ->check(OneOf({"text", "json"}));
  command->add_option("-o,--output", options->output, "The file to write; default: standard output")
      ->check(Path());
  command->add_option("--html", options->html, "Also write an HTML page with the curves to this file")
      ->check(Path());
  command->callback([options, &exit_status] {
    const Status done = SimulateFleet(*options);
    if (done.has_value()) return;
    PrintError("fleet simulate", done.error());
    exit_status = done.error().code == ErrorCode::kInvalidArgument ? kExitUsage : kExitFailed;
  });
}

}  // namespace

void AddFleet(CLI::App& app, int& exit_status) {
  CLI::App* command = app.add_subcommand("fleet", "Private telemetry of a whole fleet");
  command->require_subcommand(0,
                              1);  // with (1, 1), CLI11 would report a missing command before a parse error
  // Its own: CLI11 would show that of `gpusonde`.
  command->footer("Example: gpusonde fleet simulate --devices 100000 --hours 24 --html fleet.html");
  AddFleetCatalog(*command, exit_status);
  AddFleetIdentify(*command, exit_status);
  AddFleetServices(*command, exit_status);
  AddFleetSetup(*command, exit_status);
  AddSimulate(*command, exit_status);
  command->callback([command, &exit_status] {
    if (!command->get_subcommands().empty()) return;
    WriteTo(stderr, ListCommands(*command));
    exit_status = kExitUsage;
  });
}

}  // namespace gpusonde::app
