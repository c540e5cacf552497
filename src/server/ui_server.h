// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "base/result.h"
#include "server/api.h"
#include "server/http_server.h"
#include "server/listen_address.h"
#include "store/store.h"

namespace gpusonde::server {

// The first and the last port tried when none is given.
inline constexpr uint16_t kDefaultPort = 7171;
inline constexpr uint16_t kLastDefaultPort = 7180;

// The API and the UI over a store, on threads of its own: what `gpusonde up` and `gpusonde view` serve.
class UiServer {
 public:
  // Listens at `listen`, else on loopback at kDefaultPort or the next free port up to kLastDefaultPort.
  // Where the guard has Access, browsers sign in. `store` must outlive it. Errors: those of
  // HttpServer::Create.
  static Result<std::unique_ptr<UiServer>> Start(store::Store& store, ApiFacts facts,
                                                 const std::optional<ListenAddress>& listen,
                                                 const Guard& guard = {});

  // The same with another API, such as one over many stores. `posts` answers POST where the guard has Access,
  // for tokens of scope admin; null: none but for signing in.
  static Result<std::unique_ptr<UiServer>> Start(HttpHandler api, const std::optional<ListenAddress>& listen,
                                                 const Guard& guard = {}, HttpHandler posts = {});

  // The URL for a browser on this machine: "http://127.0.0.1:7171/".
  std::string Url() const;

  // A notice for the user who started it: another port than expected, or reachable from other machines. May
  // be empty.
  const std::string& remark() const { return remark_; }

  // Stops the server; cancels running queries and waits for them.
  ~UiServer();

 private:
  UiServer(std::unique_ptr<HttpServer> server, std::string remark);

  std::unique_ptr<HttpServer> server_;
  std::string remark_;
  std::thread thread_;
};

}  // namespace gpusonde::server
