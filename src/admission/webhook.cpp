// SPDX-License-Identifier: Apache-2.0
#include "admission/webhook.h"

#include <fmt/format.h>

#include <utility>

#include "admission/pod_patch.h"
#include "base/log.h"
#include "server/metrics_server.h"

namespace gpusonde::admission {
namespace {

// Pods have some 10 KB, and at most the 1.5 MiB that etcd stores; the JSON of hostile ones takes up to 100
// times as much memory.
constexpr size_t kMaxReviewBytes = size_t{1} << 20;
constexpr size_t kMaxReviewsBytes = 8 * kMaxReviewBytes;

server::HttpResponse NotHere(const server::HttpRequest& request) {
  return server::ErrorResponse(
      {ErrorCode::kNotFound,
       fmt::format("there is no '{}' here, only POST {}, /healthz and /readyz", request.path, kPath)});
}

server::HttpResponse Answer(const server::HttpRequest& request, std::string_view library) {
  if (request.path != kPath) return NotHere(request);
  Result<ReviewAnswer> answer = AnswerReview(request.body, library);
  if (!answer.has_value()) {
    LogWarn("refused an admission review: {}", answer.error().message);
    return server::ErrorResponse(answer.error());
  }
  if (!answer->pod_name.empty())
    LogInfo("pod {}: containers to profile: {}; with {} already: {}", answer->pod_name, answer->profiled,
            kVariable, answer->taken);
  return server::JsonResponse(std::move(answer->json));
}

}  // namespace

server::HttpRoutes Routes(std::string library) {
  return {.api =
              [](const server::HttpRequest& request) {
                return request.path == "/readyz" ? server::PlainResponse("ready\n") : NotHere(request);
              },
          .files = server::AnsweringHealth(NotHere),
          .uploads = [library = std::move(library)](
                         const server::HttpRequest& request) { return Answer(request, library); }};
}

Result<std::unique_ptr<server::HttpServer>> CreateWebhook(const WebhookOptions& options) {
  return server::HttpServer::Create({.listen = options.listen,
                                     .guard = options.guard,
                                     .max_body_bytes = kMaxReviewBytes,
                                     .max_bodies_bytes = kMaxReviewsBytes,
                                     .workers = 1},
                                    Routes(options.library));
}

}  // namespace gpusonde::admission
