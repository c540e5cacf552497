// SPDX-License-Identifier: Apache-2.0
#include "api_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <utility>

#include "base/printable.h"
#include "base/text.h"
#include "base/token_file.h"
#include "server/http_message.h"
#include "server/listen_address.h"
#include "spool/host_name.h"
#include "values.h"

namespace gpusonde::app {

void AddClientFlags(CLI::App& command, const std::string& url_flag, ClientFlags& flags) {
  command
      .add_option("--token-file", flags.token_file,
                  fmt::format("File with a token for the server of {}, one line [none]", url_flag))
      ->check(Path());
  command
      .add_option("--tls-ca", flags.ca,
                  fmt::format("PEM file with the CA of the certificate of {} [the system's CAs]", url_flag))
      ->check(Path());
}

void AddServerFlags(CLI::App& command, const std::string& what, ServerFlags& flags) {
  CLI::Option* const server = command.add_option("--server", flags.url, "Ask " + what);
  AddClientFlags(command, "--server", flags.client);
  for (const char* const name : {"--token-file", "--tls-ca"}) command.get_option(name)->needs(server);
}

void CheckFilesOrServer(const std::vector<std::string>& files, const ServerFlags& flags) {
  if (files.empty() && flags.url.empty())
    throw CLI::ValidationError("FILE is required, or a server with --server");
  if (!files.empty() && !flags.url.empty()) throw CLI::ValidationError("give FILE or --server, not both");
}

void AddHostFlag(CLI::App& command, ServerFlags& flags) {
  command.add_option("--host", flags.host, "Only this host of --server [all]")
      ->needs(command.get_option("--server"));
}

bool IsThisMachine(const std::string& host) {
  const auto address = server::ParseListenAddress(host.contains(':') ? "[" + host + "]:0" : host + ":0");
  return address.has_value() && address->IsLoopback();  // a name such as 127.example isn't an address
}

void RefuseIgnoredTls(const std::string& url_flag, const net::HttpUrl& url, const std::string& tls_flag,
                      const std::string& file) {
  if (!url.tls && !file.empty())
    throw CLI::ValidationError(
        url_flag,
        fmt::format("http:// doesn't use TLS, so {} would be ignored: use https://, or leave it out",
                    tls_flag));
}

ApiServer ParseApiServer(const std::string& url_flag, const std::string& url, const std::string& host,
                         const ClientFlags& client) {
  const auto parsed = net::HttpUrl::Parse(url);
  if (!parsed.has_value()) throw CLI::ValidationError(url_flag, parsed.error().message);
  if (parsed->target != "/")
    throw CLI::ValidationError(url_flag, fmt::format("'{}' must not have a path", url));
  if (!host.empty()) {
    const auto checked = spool::CheckHostName(host);
    if (!checked.has_value()) throw CLI::ValidationError("--host", checked.error().message);
  }
  if (!client.token_file.empty() && !parsed->tls && !IsThisMachine(parsed->host))
    throw CLI::ValidationError(
        url_flag, fmt::format("'{}' would send the token unencrypted: use https://, or an SSH tunnel", url));
  RefuseIgnoredTls(url_flag, *parsed, "--tls-ca", client.ca);
  return {.url = *parsed, .client = client, .host = host, .url_flag = url_flag};
}

std::string ListFailures(const std::vector<std::pair<std::string, std::string>>& hosts) {
  std::string lines;
  for (const auto& [host, why] : hosts) lines += fmt::format("\n  {}: {}", Printable(host), Printable(why));
  return lines;
}

namespace {

Result<net::HttpReply> Ask(const ApiServer& server, const std::string& target,
                           std::optional<std::string_view> text) {
  net::HttpUrl url = server.url;
  const std::string address = fmt::format("{}:{}", url.host, url.port);
  url.target = "/api/v1/" + target;
  if (!server.host.empty())
    url.target += fmt::format("{}host={}", target.contains('?') ? '&' : '?', server.host);
  std::string authorization;
  if (!server.client.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(server.client.token_file));
    authorization = "Bearer " + token;
  }
  const net::ClientTls tls{.ca = server.client.ca, .certificate = {}, .key = {}};
  Result<net::HttpReply> reply =
      text.has_value()
          ? net::HttpExchange(
                url, {.content = *text, .type = "text/plain; charset=utf-8", .authorization = authorization},
                server.max_reply_bytes, server.timeout_ns, tls)
          : net::HttpGet(url, authorization, server.max_reply_bytes, server.timeout_ns, tls);
  if (!reply.has_value() && reply.error().code == ErrorCode::kIo)
    return Fail(ErrorCode::kIo,
                fmt::format("{} runs but gave no response within {} s: it may be busy; try again{}{}",
                            address, server.timeout_ns / kNanosPerSecond,
                            server.when_slow.empty() ? "" : ", or ", server.when_slow));
  if (!reply.has_value())
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format(
            "can't reach gpusonde at {}: {}{}", address, reply.error().message,
            reply.error().code == ErrorCode::kPermissionDenied ? ""  // it runs
            : server.url_flag == "--server"
                ? "\nDoes `gpusonde serve`, `up` or `view` run there?"
                : fmt::format("\nIs `gpusonde up` running? Start it with `sudo gpusonde up`, or give its "
                              "address with {}.",
                              server.url_flag)));
  if (reply->status == 200) return reply;
  const std::string message = server::ErrorMessageOf(reply->body);
  if (!server.host.empty() && message.starts_with("unknown parameter 'host'"))
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("{} has one host, as it is no `gpusonde serve`: leave out --host", address));
  if (reply->status == 401 && server.client.token_file.empty())
    return Fail(ErrorCode::kPermissionDenied,
                fmt::format("{} answers: {}\nGive the file that has the token with {}.", address, message,
                            server.token_flag));
  // A server that is busy says so (ErrorMessageOf); a proxy before one that doesn't answer has its own page.
  if (message.empty() && reply->status >= 502 && reply->status <= 504)
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{} answers {} with status {}: gpusonde, or a proxy before it, is busy or down; try "
                    "again in a moment",
                    address, url.target.substr(0, url.target.find('?')), reply->status));
  return Fail(ErrorCode::kUnavailable,
              message.empty() ? fmt::format("{} is not gpusonde: it answers {} with status {}\nGive the "
                                            "address of `gpusonde up` with {}.",
                                            address, url.target, reply->status, server.url_flag)
                              : fmt::format("{} answers: {}", address, message));
}

}  // namespace

Result<TimedAnswer> AskApiTimed(const ApiServer& server, const std::string& target) {
  const int64_t begin_ns = MonotonicNow();
  ASSIGN_OR_RETURN(net::HttpReply reply, Ask(server, target, std::nullopt));
  constexpr std::string_view kCpu = "cpu;dur=";
  const std::string_view timing = reply.server_timing;
  const auto cpu_ms =
      timing.starts_with(kCpu) ? ParseNumber<double>(timing.substr(kCpu.size())) : std::nullopt;
  const bool is_said = cpu_ms.has_value() && *cpu_ms >= 0 && *cpu_ms < 1e9;
  return TimedAnswer{
      .body = std::move(reply.body),
      .cost_ns = is_said ? static_cast<int64_t>(*cpu_ms * kNanosPerMilli) : MonotonicNow() - begin_ns};
}

Result<std::string> AskApi(const ApiServer& server, const std::string& target) {
  ASSIGN_OR_RETURN(net::HttpReply reply, Ask(server, target, std::nullopt));
  return std::move(reply.body);
}

Result<std::string> PostToApi(const ApiServer& server, const std::string& target, std::string_view text) {
  ASSIGN_OR_RETURN(net::HttpReply reply, Ask(server, target, text));
  return std::move(reply.body);
}

}  // namespace gpusonde::app
