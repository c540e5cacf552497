// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "agent/live_agent.h"
#include "agent/uplink.h"
#include "api_client.h"
#include "base/heap.h"
#include "base/state_folder.h"
#include "base/time.h"
#include "base/token_file.h"
#include "exporters/prometheus/live_totals.h"
#include "live_flags.h"
#include "messages.h"
#include "otlp_flags.h"
#include "sources/proc/process.h"
#include "spool/host_name.h"
#include "stop_signal.h"
#include "values.h"

namespace gpusonde::app {
namespace {

struct AgentFlags {
  LiveFlags live;
  std::string server;
  net::HttpUrl url;
  std::string token_file;
  net::ClientTls tls;
  std::string state = DefaultStateFolder();
  std::string host = proc::ReadHost().name;
  double spool_mb = 1000;
};

Result<net::HttpUrl> ParseServer(const std::string& text) {
  ASSIGN_OR_RETURN(net::HttpUrl url, net::HttpUrl::Parse(text));
  if (url.target != "/")
    return Fail(ErrorCode::kInvalidArgument, fmt::format("'{}' must not have a path", text));
  if (!url.tls && !IsThisMachine(url.host))
    return Fail(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' would send the token and all data unencrypted: use https:// (gpusonde serve "
                    "--tls-cert), or an SSH tunnel to the server's address on loopback",
                    text));
  return url;
}

Status RunAgentOf(const AgentFlags& flags) {
  CatchStopSignals();  // before creating anything that a signal could leave unfinished
  ReturnMemoryEarly();
  TRY(ReadToken(flags.token_file));
  TRY(MakeFolder(flags.state));
  agent::LiveAgent::Options options = AgentOptions(flags.live, flags.host);
  options.spool_folder = flags.state + "/agent";
  options.host = flags.host;
  options.min_free_bytes = static_cast<int64_t>(flags.live.reserve_mb * 1e6);
  options.max_spool_bytes = static_cast<int64_t>(flags.spool_mb * 1e6);
  agent::Uplink uplink({.server = flags.url,
                        .token_file = flags.token_file,
                        .tls = flags.tls,
                        .host = flags.host,
                        .spool_folder = options.spool_folder});
  exporters::prometheus::LiveTotals totals;
  if (flags.live.otlp.parsed.has_value())
    options.on_rows = [&totals](std::span<const model::Batch> rows) { totals.Ingest(rows, MonotonicNow()); };
  ASSIGN_OR_RETURN(agent::LiveAgent agent, agent::LiveAgent::Create(options, uplink));
  ASSIGN_OR_RETURN(const auto metrics_push, PushMetrics(flags.live.otlp, totals));
  PrintTo(stdout, "sampling this machine at {:g} Hz and sending to {} as {} (press Ctrl-C to stop)\n",
          flags.live.frequency_hz, flags.server, flags.host);
  FlushOutput();
  TRY(RunAgent(agent, flags.live, [] {}));
  if (metrics_push != nullptr) metrics_push->Finish();
  return {};
}

}  // namespace

void AddAgent(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<AgentFlags>();
  CLI::App* command =
      app.add_subcommand("agent", "Profile this machine continuously and send the data to `gpusonde serve`");
  command->footer(
      "Example:\n"
      "  gpusonde agent --server https://gpusonde.example:7272 --token-file token\n\n"
      "Data waits in STATE/agent while the server doesn't respond. docs/serve.md says what is sent.");
  command
      ->add_option("--server", flags->server,
                   "http[s]://HOST[:PORT] of `gpusonde serve`; http only on loopback")
      ->required();
  command
      ->add_option("--token-file", flags->token_file,
                   "File with the token that the server asks for; read before each request")
      ->check(Path())
      ->required();
  command
      ->add_option("--tls-ca", flags->tls.ca,
                   "PEM file with the CA of the server's certificate [the system's CAs]")
      ->check(Path());
  CLI::Option* const certificate =
      command
          ->add_option("--tls-cert", flags->tls.certificate,
                       "PEM file with a certificate of this machine, if the server asks [none]")
          ->check(Path());
  CLI::Option* const key =
      command->add_option("--tls-key", flags->tls.key, "PEM file with its key [none]")->check(Path());
  certificate->needs(key);
  key->needs(certificate);
  command->add_option("--state", flags->state, "Folder for data that waits to be sent")
      ->check(Path())
      ->capture_default_str();
  command->add_option("--host", flags->host, "Name of this machine at the server")->capture_default_str();
  command->add_option("--spool-mb", flags->spool_mb, "Drop new data while this much waits to be sent")
      ->capture_default_str()
      ->check(Number("MB", 10, 1e9));
  AddLiveFlags(*command, flags->live);
  command->callback([flags, &exit_status] {
    auto url = ParseServer(flags->server);
    if (!url.has_value()) throw CLI::ValidationError("--server", url.error().message);
    flags->url = *std::move(url);
    RefuseIgnoredTls("--server", flags->url, "--tls-ca", flags->tls.ca);
    RefuseIgnoredTls("--server", flags->url, "--tls-cert", flags->tls.certificate);
    if (const Status named = spool::CheckHostName(flags->host); !named.has_value())
      throw CLI::ValidationError("--host", named.error().message);
    CheckLiveFlags(flags->live);
    exit_status = ExitStatusOf("agent", RunAgentOf(*flags));
  });
}

}  // namespace gpusonde::app
