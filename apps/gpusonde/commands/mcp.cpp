// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api_client.h"
#include "listen_flags.h"
#include "mcp/http.h"
#include "mcp/server.h"
#include "mcp/source.h"
#include "mcp/stdio.h"
#include "messages.h"
#include "reader_process.h"
#include "recordings.h"
#include "stop_signal.h"
#include "values.h"

namespace gpusonde::app {
namespace {

constexpr const char* kMcpFooter = R"(
It speaks the Model Context Protocol over standard input and output. To add it to an assistant:

  {"mcpServers": {"gpusonde": {"command": "gpusonde", "args": ["mcp", "run.sonde"]}}}

  gpusonde mcp rank0.json.gz rank1.json.gz
  gpusonde mcp --live                                            # the machine that `gpusonde up` watches
  gpusonde mcp --live http://127.0.0.1:7171 --host node-3        # a host of `gpusonde serve`
  gpusonde mcp run.sonde --listen 127.0.0.1:7180 --tokens tokens

docs/mcp.md describes its tools and their limits.)";

constexpr const char* kDefaultUrl = "http://127.0.0.1:7171";
// The largest flame graphs of days have some 10 MB.
constexpr size_t kMaxReplyBytes = size_t{64} << 20;
constexpr int64_t kTimeoutNs = 30 * kNanosPerSecond;

struct McpFlags {
  std::vector<std::string> files;
  std::string live;  // a URL; empty: files are read
  std::string host;
  ClientFlags client;
  std::string listen;
  ListenFlags protection;
  convert::ImportOptions reading;  // of traces
};

// Over HTTP if there are options for it, else over standard input and output.
using Http = std::optional<mcp::HttpTransport::Options>;

Status Serve(mcp::Source& source, const Http& http) {
  mcp::Server server(source);
  if (!http.has_value()) return mcp::ServeStdio(server, STDIN_FILENO, STDOUT_FILENO);
  ASSIGN_OR_RETURN(const auto transport, mcp::HttpTransport::Start(server, *http));
  CatchStopSignals();
  PrintTo(stdout, "listening at {} (press Ctrl-C to stop)\n", PlaceOf(transport->Url(), http->listen));
  FlushOutput();
  WaitForStopSignal();
  source.Interrupt();  // the call that runs
  return {};
}

Status ServeFiles(const McpFlags& flags, const Http& http) {
  ASSIGN_OR_RETURN(const auto store, OpenRecordings(flags.files, flags.reading));
  ASSIGN_OR_RETURN(std::vector<std::string> notices, NoticesOf(*store));
  std::set_new_handler(nullptr);  // a call that needs too much memory fails alone (mcp/server.cpp)
  const auto source = mcp::FilesSource(*store, flags.files, TitleOf(flags.files), std::move(notices));
  return Serve(*source, http);
}

int Mcp(const McpFlags& flags, const Http& http) {
  if (flags.live.empty())
    return RunReader({.command = "mcp",
                      .files = flags.files,
                      .readable = FilesOf(flags.protection),
                      .serves = http.has_value(),
                      .work = [&] { return ExitStatusOf("mcp", ServeFiles(flags, http)); }});
  ApiServer api = ParseApiServer("--live", flags.live, flags.host, flags.client);
  api.timeout_ns = kTimeoutNs;
  api.max_reply_bytes = kMaxReplyBytes;
  api.when_slow = "ask about less time";
  const auto source = mcp::ServerSource([api](const std::string& target) { return AskApi(api, target); });
  return ExitStatusOf("mcp", Serve(*source, http));
}

Http ParseHttp(const McpFlags& flags) {
  const server::ListenAddress listen = ParseListen("--listen", flags.listen, flags.protection);
  auto guard = OpenGuard(flags.protection);
  if (!guard.has_value()) throw CLI::ValidationError("--listen", guard.error().message);
  return mcp::HttpTransport::Options{.listen = listen, .guard = *std::move(guard)};
}

}  // namespace

void AddMcp(CLI::App& app, int& exit_status) {
  auto flags = std::make_shared<McpFlags>();
  CLI::App* command =
      app.add_subcommand("mcp", "Let an AI assistant ask about recordings, traces or a running `up`");
  command->footer(kMcpFooter);
  CLI::Option* const files =
      command->add_option("FILE", flags->files, "Recordings or traces to merge")->check(Path());
  CLI::Option* const live =
      command
          ->add_option("--live", flags->live,
                       "Ask a running `gpusonde up`, `view` or `serve` instead: http[s]://HOST[:PORT]")
          ->expected(0, 1)
          ->default_str(kDefaultUrl)
          ->excludes(files);
  command->add_option("--host", flags->host, "Which host of `gpusonde serve` [the only one]")->needs(live);
  AddClientFlags(*command, "--live", flags->client);
  CLI::Option* const listen = command->add_option(
      "--listen", flags->listen, "IP:PORT to listen on for HTTP, with --tokens; port 0: any free port");
  AddListenFlags(*command, flags->protection);
  listen->needs(command->get_option("--tokens"));
  for (const char* option : {"--tokens", "--tls-cert", "--insecure"})
    command->get_option(option)->needs(listen);
  AddTraceOptions(*command, flags->reading);
  command->callback([flags, files, live, listen, &exit_status] {
    if (files->empty() && live->empty()) throw CLI::RequiredError("FILE or --live");
    if (!live->empty() && flags->live.empty()) flags->live = kDefaultUrl;
    exit_status = Mcp(*flags, listen->empty() ? std::nullopt : ParseHttp(*flags));
  });
}

}  // namespace gpusonde::app
