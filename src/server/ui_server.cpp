// SPDX-License-Identifier: Apache-2.0
#include "server/ui_server.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "server/metrics_server.h"
#include "server/sign_in.h"
#include "server/sql_post.h"
#include "server/ui_files.h"

namespace gpusonde::server {
namespace {

// The first of the default ports that is free.
Result<std::unique_ptr<HttpServer>> CreateAtDefaultPort(HttpServerOptions options, const HttpRoutes& routes) {
  for (uint16_t port = kDefaultPort; port <= kLastDefaultPort; ++port) {
    options.listen.port = port;
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Create(options, routes);
    if (server.has_value() || server.error().code != ErrorCode::kUnavailable) return server;
  }
  return Fail(
      ErrorCode::kUnavailable,
      fmt::format("ports {} to {} of {} are all in use; choose another one: with 127.0.0.1:0 it is any "
                  "that is free",
                  kDefaultPort, kLastDefaultPort, options.listen.ip));
}

std::string RemarkOn(const ListenAddress& address, const Guard& guard, bool port_was_named) {
  if (!address.IsLoopback() && guard.access == nullptr)
    return fmt::format(
        "anyone who can reach {} can read all data shown here: names of programs, their "
        "command lines and functions",
        address.ToText());
  if (!address.IsLoopback() && guard.tls == nullptr)
    return fmt::format("anyone on the network path to {} can read all data shown here, and the tokens",
                       address.ToText());
  if (!port_was_named && address.port != kDefaultPort)
    return fmt::format("port {} is in use, perhaps by another gpusonde; using port {}", kDefaultPort,
                       address.port);
  return {};
}

}  // namespace

Result<std::unique_ptr<UiServer>> UiServer::Start(store::Store& store, ApiFacts facts,
                                                  const std::optional<ListenAddress>& listen,
                                                  const Guard& guard) {
  // The handler is copied, and its copies share the data.
  const std::shared_ptr<ApiData> data = ReadingFrom(store);
  return Start(
      [data, api = ApiHandler(*data, std::move(facts))](const HttpRequest& request) { return api(request); },
      listen, guard);
}

Result<std::unique_ptr<UiServer>> UiServer::Start(HttpHandler api, const std::optional<ListenAddress>& listen,
                                                  const Guard& guard, HttpHandler posts) {
  const bool sign_in = guard.access != nullptr;
  const HttpRoutes routes{.api = AnsweringSession(std::move(api), sign_in),
                          .files = AnsweringHealth(UiHandler(UiFolders())),
                          .uploads = sign_in ? SignInHandler(guard.access, std::move(posts)) : HttpHandler()};
  HttpServerOptions options{.guard = guard,
                            .post_scope = Scope::kAdmin,
                            .sign_in = sign_in,
                            .posts_ask = true,
                            .max_body_bytes = kMaxStatementBytes};
  if (listen.has_value()) options.listen = *listen;
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server, listen.has_value()
                                                           ? HttpServer::Create(options, routes)
                                                           : CreateAtDefaultPort(options, routes));
  std::string remark = RemarkOn(server->address(), guard, listen.has_value());
  try {
    return std::unique_ptr<UiServer>(new UiServer(std::move(server), std::move(remark)));
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("can't start a thread for the server: {}", error.what()));
  }
}

UiServer::UiServer(std::unique_ptr<HttpServer> server, std::string remark)
    : server_(std::move(server)), remark_(std::move(remark)), thread_([this] { server_->Run(); }) {}

UiServer::~UiServer() {
  server_->Stop();
  thread_.join();
}

std::string UiServer::Url() const { return server_->Url(); }

}  // namespace gpusonde::server
