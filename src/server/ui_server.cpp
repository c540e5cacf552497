// SPDX-License-Identifier: Apache-2.0
#include "server/ui_server.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "server/metrics_server.h"
#include "server/ui_files.h"

namespace gpusonde::server {
namespace {

// The first of the default ports that is free.
Result<std::unique_ptr<HttpServer>> CreateAtDefaultPort(const HttpRoutes& routes) {
  HttpServerOptions options;
  for (uint16_t port = kDefaultPort; port <= kLastDefaultPort; ++port) {
    options.listen.port = port;
    Result<std::unique_ptr<HttpServer>> server = HttpServer::Create(options, routes);
    if (server.has_value() || server.error().code != ErrorCode::kUnavailable) return server;
  }
  return Fail(ErrorCode::kUnavailable,
              fmt::format("ports {} to {} of {} are all in use; choose another, as in --listen 127.0.0.1:0 "
                          "for any free port",
                          kDefaultPort, kLastDefaultPort, options.listen.ip));
}

std::string RemarkOn(const ListenAddress& address, bool port_was_named) {
  if (!address.IsLoopback())
    return fmt::format(
        "anyone who can reach {} can read all data shown here: names of programs, their "
        "command lines and functions",
        address.ToText());
  if (!port_was_named && address.port != kDefaultPort)
    return fmt::format("port {} is in use, perhaps by another gpusonde; using port {}", kDefaultPort,
                       address.port);
  return {};
}

}  // namespace

Result<std::unique_ptr<UiServer>> UiServer::Start(store::Store& store, ApiFacts facts,
                                                  const std::optional<ListenAddress>& listen) {
  // The handler is copied, and its copies share the data.
  const std::shared_ptr<ApiData> data = ReadingFrom(store);
  return Start(
      [data, api = ApiHandler(*data, std::move(facts))](const HttpRequest& request) { return api(request); },
      listen);
}

Result<std::unique_ptr<UiServer>> UiServer::Start(HttpHandler api,
                                                  const std::optional<ListenAddress>& listen) {
  const HttpRoutes routes{
      .api = std::move(api), .files = AnsweringHealth(UiHandler(UiFolders())), .uploads = {}};
  ASSIGN_OR_RETURN(std::unique_ptr<HttpServer> server, listen.has_value()
                                                           ? HttpServer::Create({.listen = *listen}, routes)
                                                           : CreateAtDefaultPort(routes));
  std::string remark = RemarkOn(server->address(), listen.has_value());
  try {
    return std::unique_ptr<UiServer>(new UiServer(std::move(server), std::move(remark)));
  } catch (const std::system_error& error) {
    return Fail(ErrorCode::kUnavailable,
                fmt::format("cannot start a thread for the server: {}", error.what()));
  }
}

UiServer::UiServer(std::unique_ptr<HttpServer> server, std::string remark)
    : server_(std::move(server)), remark_(std::move(remark)), thread_([this] { server_->Run(); }) {}

UiServer::~UiServer() {
  server_->Stop();
  thread_.join();
}

std::string UiServer::Url() const {
  ListenAddress address = server_->address();
  if (address.ip == "0.0.0.0") address.ip = "127.0.0.1";
  if (address.ip == "::") address.ip = "::1";
  return fmt::format("http://{}/", address.ToText());
}

}  // namespace gpusonde::server
