// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "api_client.h"
#include "base/log.h"
#include "base/printable.h"
#include "base/problem_log.h"
#include "base/time.h"
#include "fleet/service/board.h"
#include "fleet/service/board_routes.h"
#include "fleet/service/decryptor_service.h"
#include "fleet/service/device_service.h"
#include "fleet/service/gpu_tickets.h"
#include "fleet/service/http_board.h"
#include "fleet_observer.h"
#include "listen_flags.h"
#include "live_flags.h"
#include "messages.h"
#include "net/backoff.h"
#include "server/http_server.h"
#include "serving.h"
#include "stop_signal.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kAggregateFooter = R"(
Adds the devices' masked reports, of which it can't read any, and publishes what the decryptors let it open. Devices and
decryptors need tokens of scope ingest. docs/fleet/services.md has the whole story.

  gpusonde fleet aggregate --fleet fleet.json --state /data/fleet --tokens tokens
  gpusonde fleet aggregate --fleet fleet.json --state /data/fleet --tokens tokens --listen 0.0.0.0:7373 \
      --tls-cert server.crt --tls-key server.key)";

constexpr const char* kDecryptFooter = R"(
Each decryptor runs at another party, and connects to the aggregator. Never restore its --state from a backup: it must
not forget what it answered for.

  gpusonde fleet decrypt --fleet fleet.json --key decryptor.key --state /data/decryptor \
      --aggregator https://fleet.example:7373 --token-file token)";

constexpr const char* kReportFooter = R"(
Sends one report an epoch of each ticket's GPU, of what `gpusonde up` recorded on this machine: which application ran,
and a histogram of one group of characteristics, masked so that only sums over many devices can be read. Each ticket
is for one GPU, which it keeps: new GPUs, in the order of their UUIDs, take the tickets that have none yet.

  gpusonde fleet report --fleet fleet.json --ticket /etc/gpusonde/*.ticket --state /var/lib/gpusonde-fleet \
      --aggregator https://fleet.example:7373 --token-file token

Of machines with `gpusonde agent`, one process reports what their server has:

  gpusonde fleet report --fleet fleet.json --ticket tickets/*.ticket --state /var/lib/gpusonde-fleet \
      --up https://gpusonde.example:7171 --up-token-file read-token --hosts all \
      --aggregator https://fleet.example:7373 --token-file token)";

constexpr const char* kResultsFooter = R"(
  gpusonde fleet results --aggregator https://fleet.example:7373 --token-file token
  gpusonde fleet results --aggregator http://127.0.0.1:7373 --epochs 168 --format json)";

int64_t NowMs() { return EpochNow() / kNanosPerMilli; }

// Steps a service until a stop is requested, and says what goes wrong and that it works again. After failures
// it waits longer.
void Run(std::string_view command, uint32_t period_s, const std::function<Status()>& step) {
  const int64_t every_ns = std::min<int64_t>(period_s * kNanosPerSecond / 50, kNanosPerSecond);
  net::Backoff backoff(every_ns, 30 * every_ns);
  ProblemLog problems;
  int64_t next_ns = 0;
  while (!StopRequested()) {
    if (MonotonicNow() >= next_ns) {
      const Status done = step();
      switch (problems.Set(done.has_value() ? "" : done.error().message)) {
        case ProblemLog::Change::kBegan:
          PrintNotice(command, fmt::format("{}; trying again", done.error().message));
          break;
        case ProblemLog::Change::kEnded:
          PrintNotice(command, "works again");
          break;
        case ProblemLog::Change::kNone:
          break;
      }
      if (done.has_value()) backoff.Reset();
      next_ns = MonotonicNow() + (done.has_value() ? every_ns : backoff.Next());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min<int64_t>(every_ns / kNanosPerMilli, 100)));
  }
}

struct AggregateOptions {
  std::string fleet;
  std::string state;
  std::string listen = "127.0.0.1:7373";
  ListenFlags protection;
};

Status Aggregate(const AggregateOptions& options, const server::ListenAddress& listen) {
  CatchStopSignals();
  ASSIGN_OR_RETURN(fleet::Description fleet, fleet::ReadDescription(options.fleet));
  ASSIGN_OR_RETURN(const server::Guard guard, OpenGuard(options.protection));
  TRY(MakeFolder(options.state));
  const uint32_t period_s = fleet.period_s;
  const std::string name = fleet.name;
  ASSIGN_OR_RETURN(const std::unique_ptr<fleet::Board> board,
                   fleet::Board::Open(std::move(fleet), options.state));
  // Whoever takes part may read what is there for all.
  ASSIGN_OR_RETURN(
      const std::unique_ptr<server::HttpServer> server,
      server::HttpServer::Create({.listen = listen, .guard = guard, .get_scope = server::Scope::kIngest},
                                 fleet::BoardRoutes(*board, NowMs)));
  const Serving serving(*server);
  PrintTo(stdout, "aggregates the fleet {} at {}, stored in {} (press Ctrl-C to stop)\n", name,
          PlaceOf(server->Url(), listen), options.state);
  FlushOutput();
  Run("fleet aggregate", period_s, [&] { return board->Tick(NowMs()); });
  return {};
}

void AddAggregate(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<AggregateOptions>();
  CLI::App* command = fleet.add_subcommand("aggregate", "Receive and add the reports of a fleet's devices");
  command->footer(kAggregateFooter);
  command->add_option("--fleet", options->fleet, "The fleet's description")->check(Path())->required();
  command->add_option("--state", options->state, "Folder for the data")->check(Path())->required();
  command
      ->add_option("--listen", options->listen, "IP:PORT for devices and decryptors; port 0: any free port")
      ->capture_default_str();
  AddListenFlags(*command, options->protection);
  command->callback([options, &exit_status] {
    const server::ListenAddress listen = ParseListen("--listen", options->listen, options->protection);
    exit_status = ExitStatusOf("fleet aggregate", Aggregate(*options, listen));
  });
}

// The aggregator that a party connects to.
struct AggregatorFlags {
  std::string url;
  ClientFlags client;
  net::HttpUrl parsed = {};
};

void AddAggregatorFlags(CLI::App& command, AggregatorFlags& flags) {
  command.add_option("--aggregator", flags.url, "http[s]://HOST[:PORT] of `gpusonde fleet aggregate`")
      ->required();
  AddClientFlags(command, "--aggregator", flags.client);
}

// Throws CLI::ValidationError.
void ParseAggregator(AggregatorFlags& flags) {
  flags.parsed = ParseApiServer("--aggregator", flags.url, "", flags.client).url;
}

fleet::HttpBoard Connect(const AggregatorFlags& flags) {
  return fleet::HttpBoard({.url = flags.parsed,
                           .token_file = flags.client.token_file,
                           .tls = {.ca = flags.client.ca, .certificate = {}, .key = {}}});
}

struct DecryptOptions {
  std::string fleet;
  std::string key;
  std::string state;
  AggregatorFlags aggregator;
};

Status Decrypt(const DecryptOptions& options) {
  CatchStopSignals();
  ASSIGN_OR_RETURN(fleet::Description fleet, fleet::ReadDescription(options.fleet));
  ASSIGN_OR_RETURN(fleet::SigningKey key, fleet::ReadKeyFile(options.key));
  TRY(MakeFolder(options.state));
  const uint32_t period_s = fleet.period_s;
  const std::string name = fleet.name;
  const auto names = fleet.decryptors;
  ASSIGN_OR_RETURN(fleet::DecryptorService service,
                   fleet::DecryptorService::Open(std::move(fleet), std::move(key), options.state, NowMs()));
  fleet::HttpBoard board = Connect(options.aggregator);
  PrintTo(stdout, "decrypts for the fleet {} as {} at {} (press Ctrl-C to stop)\n", name,
          names[service.number()].name, options.aggregator.url);
  FlushOutput();
  std::optional<uint32_t> told = service.last_answered();
  Run("fleet decrypt", period_s, [&] {
    Status done = service.Step(board, NowMs());
    if (service.last_answered() != told) {
      told = service.last_answered();
      PrintTo(stdout, "answered for epoch {}, {} devices enrolled\n", *told, service.devices());
      FlushOutput();
    }
    return done;
  });
  return {};
}

void AddDecrypt(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<DecryptOptions>();
  CLI::App* command =
      fleet.add_subcommand("decrypt", "Open sums of reports, together with the other decryptors");
  command->footer(kDecryptFooter);
  command->add_option("--fleet", options->fleet, "The fleet's description")->check(Path())->required();
  command->add_option("--key", options->key, "This decryptor's key")->check(Path())->required();
  command->add_option("--state", options->state, "Folder for its secrets and what it answered for")
      ->check(Path())
      ->required();
  AddAggregatorFlags(*command, options->aggregator);
  command->callback([options, &exit_status] {
    ParseAggregator(options->aggregator);
    exit_status = ExitStatusOf("fleet decrypt", Decrypt(*options));
  });
}

struct ReportOptions {
  std::string fleet;
  std::vector<std::string> tickets;
  std::string state;
  AggregatorFlags aggregator;
  std::string up = "http://127.0.0.1:7171";
  std::string up_token;
  std::string hosts;
  ApiServer up_server;
};

Status Report(const ReportOptions& options) {
  CatchStopSignals();
  ASSIGN_OR_RETURN(const fleet::Description fleet, fleet::ReadDescription(options.fleet));
  TRY(MakeFolder(options.state));
  std::vector<fleet::DeviceService> devices;
  std::vector<uint64_t> numbers;
  for (const std::string& path : options.tickets) {
    ASSIGN_OR_RETURN(fleet::Ticket ticket, fleet::ReadTicket(path));
    const std::string folder = options.state + "/" + fleet::DeviceName(ticket.device);
    ASSIGN_OR_RETURN(fleet::DeviceService device,
                     fleet::DeviceService::Open(fleet, std::move(ticket), folder));
    numbers.push_back(device.device());
    devices.push_back(std::move(device));
  }
  ASSIGN_OR_RETURN(fleet::GpuTickets gpus, fleet::GpuTickets::Open(options.state, std::move(numbers)));
  FleetObserver observer(options.up_server, options.hosts, fleet.catalog);
  const auto work_of = [&](uint64_t device, int64_t from_ms, int64_t to_ms) -> Result<fleet::Work> {
    TRY(observer.Read(from_ms, to_ms, NowMs()));
    if (gpus.GpuOf(device) == nullptr) TRY(gpus.Assign(observer.Gpus()));
    const std::string* const gpu = gpus.GpuOf(device);
    if (gpu == nullptr)
      return Fail(ErrorCode::kUnavailable,
                  fmt::format("there are {} GPUs, and more tickets than that; device {} reports of none",
                              observer.Gpus().size(), fleet::DeviceName(device)));
    return observer.WorkOf(*gpu);
  };
  fleet::HttpBoard board = Connect(options.aggregator);
  PrintTo(stdout, "reports {} GPUs to the fleet {} at {} (press Ctrl-C to stop)\n", devices.size(),
          fleet.name, options.aggregator.url);
  FlushOutput();
  std::vector<std::optional<uint32_t>> told(devices.size());
  std::vector<bool> told_enrolled(devices.size());
  Run("fleet report", fleet.period_s, [&] {
    Status done;
    for (size_t i = 0; i < devices.size(); ++i) {
      const auto observe = [&](int64_t from_ms, int64_t to_ms) {
        return work_of(devices[i].device(), from_ms, to_ms);
      };
      Status one = devices[i].Step(board, observe, NowMs());
      if (!one.has_value() && done.has_value()) done = std::move(one);
      const std::string name = fleet::DeviceName(devices[i].device());
      if (devices[i].is_enrolled() && !told_enrolled[i]) {
        told_enrolled[i] = true;
        PrintTo(stdout, "device {}: enrolled\n", name);
      }
      const auto& reported = devices[i].last_reported();
      if (!reported.has_value() || told[i] == reported->epoch) continue;
      told[i] = reported->epoch;
      PrintTo(stdout, "device {}: report of epoch {} {}\n", name, reported->epoch,
              Printable(reported->verdict));
      FlushOutput();
    }
    return done;
  });
  return {};
}

void AddReport(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command = fleet.add_subcommand("report", "Send the reports of this machine's GPUs");
  command->footer(kReportFooter);
  command->add_option("--fleet", options->fleet, "The fleet's description")->check(Path())->required();
  command->add_option("--ticket", options->tickets, "Tickets, one for each GPU")->check(Path())->required();
  command->add_option("--state", options->state, "Folder for the devices' keys")->check(Path())->required();
  command
      ->add_option("--up", options->up,
                   "http[s]://HOST[:PORT] of `gpusonde up` on this machine, or of `gpusonde serve`")
      ->capture_default_str();
  command->add_option("--up-token-file", options->up_token, "File with a token for it, of scope read [none]")
      ->check(Path());
  command->add_option(
      "--hosts", options->hosts,
      "Of `serve`: all, or names of the hosts whose GPUs these are, with commas between them");
  AddAggregatorFlags(*command, options->aggregator);
  command->get_option("--tls-ca")
      ->description("PEM file with the CA of the certificates of --aggregator and --up [the system's CAs]");
  command->callback([options, &exit_status] {
    // --tls-ca is for both.
    const std::string ca = std::exchange(options->aggregator.client.ca, "");
    ParseAggregator(options->aggregator);
    options->up_server = ParseApiServer("--up", options->up, "", {.token_file = options->up_token, .ca = {}});
    if (!options->up_server.url.tls)
      RefuseIgnoredTls("--aggregator", options->aggregator.parsed, "--tls-ca", ca);
    options->aggregator.client.ca = options->up_server.client.ca = ca;
    options->up_server.token_flag = "--up-token-file";
    exit_status = ExitStatusOf("fleet report", Report(*options));
  });
}

struct ResultsOptions {
  AggregatorFlags aggregator;
  std::string format = "text";
  int64_t epochs = 24;
};

Status ShowResults(const ResultsOptions& options) {
  ASSIGN_OR_RETURN(const std::string results,
                   Connect(options.aggregator).Results(options.format, options.epochs));
  PrintTo(stdout, "{}{}", PrintableLines(results), options.format == "json" ? "\n" : "");
  return {};
}

void AddResults(CLI::App& fleet, int& exit_status) {
  auto options = std::make_shared<ResultsOptions>();
  CLI::App* command = fleet.add_subcommand("results", "Show what a fleet's reports say");
  command->footer(kResultsFooter);
  AddAggregatorFlags(*command, options->aggregator);
  command->add_option("--epochs", options->epochs, "Sum this many of the newest epochs")
      ->capture_default_str()
      ->check(WholeNumber("N", 1, 10'000));
  command->add_option("--format", options->format, "text or json")
      ->capture_default_str()
      ->check(OneOf({"text", "json"}));
  command->callback([options, &exit_status] {
    ParseAggregator(options->aggregator);
    exit_status = ExitStatusOf("fleet results", ShowResults(*options));
  });
}

}  // namespace

void AddFleetServices(CLI::App& fleet, int& exit_status) {
  AddAggregate(fleet, exit_status);
  AddDecrypt(fleet, exit_status);
  AddReport(fleet, exit_status);
  AddResults(fleet, exit_status);
}

}  // namespace gpusonde::app
