// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "server/http_server.h"
#include "server/listen_address.h"

namespace gpusonde::admission {

// Where the API server posts its reviews.
inline constexpr std::string_view kPath = "/api/v1/admission";

// Answers the reviews posted to kPath (admission/pod_patch.h), /healthz and /readyz. `library` is as there.
server::HttpRoutes Routes(std::string library);

struct WebhookOptions {
  server::ListenAddress listen;
  server::Guard guard;  // without Access: an answer says nothing that isn't in the question
  std::string library;
};

// The server of these routes. The memory that it needs is bounded for any client: one review at a time is
// read, of at most 1 MiB. Errors: those of server::HttpServer::Create.
Result<std::unique_ptr<server::HttpServer>> CreateWebhook(const WebhookOptions& options);

}  // namespace gpusonde::admission
