// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/board_routes.h"

#include <fmt/format.h>

#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/log.h"
#include "fleet/service/results.h"
#include "server/metrics_server.h"
#include "server/query_parameters.h"

namespace gpusonde::fleet {
namespace {

using server::HttpRequest;
using server::HttpResponse;

constexpr std::string_view kPrefix = "/api/v1/fleet/";
constexpr int64_t kMaxEpochs = 10'000;

HttpResponse Binary(const Bytes& bytes) {
  return server::ContentResponse("application/octet-stream", std::string(bytes.begin(), bytes.end()));
}

HttpResponse NotHere(const HttpRequest& request) {
  return server::ErrorResponse(
      {ErrorCode::kNotFound,
       fmt::format("there is no '{}' here, but {}notices, enrolments, lists, reports and results",
                   request.path, kPrefix)});
}

// The parameter `epoch`, which is the only one.
Result<uint32_t> EpochOf(const HttpRequest& request) {
  ASSIGN_OR_RETURN(server::QueryParameters parameters, server::QueryParameters::Create(request.query));
  ASSIGN_OR_RETURN(const auto epoch,
                   parameters.TakeInteger("epoch", 0, std::numeric_limits<uint32_t>::max()));
  TRY(parameters.Finish());
  if (!epoch.has_value()) return Fail(ErrorCode::kInvalidArgument, "parameter 'epoch' is missing");
  return static_cast<uint32_t>(*epoch);
}

Result<HttpResponse> ResultsOf(const Board& board, const HttpRequest& request) {
  ASSIGN_OR_RETURN(server::QueryParameters parameters, server::QueryParameters::Create(request.query));
  const std::string_view format = parameters.TakeText("format").value_or("json");
  ASSIGN_OR_RETURN(const auto epochs, parameters.TakeInteger("epochs", 1, kMaxEpochs));
  TRY(parameters.Finish());
  if (format != "json" && format != "text")
    return Fail(ErrorCode::kInvalidArgument, "parameter 'format' is json or text");
  ASSIGN_OR_RETURN(const Results results, SumUp(board, static_cast<size_t>(epochs.value_or(24))));
  return format == "json" ? server::JsonResponse(ToJson(results)) : server::PlainResponse(ToText(results));
}

Result<HttpResponse> Get(const Board& board, const HttpRequest& request, std::string_view what,
                         int64_t now_ms) {
  if (what == "results") return ResultsOf(board, request);
  if (what != "notices" && what != "enrolments" && what != "lists") return NotHere(request);
  ASSIGN_OR_RETURN(const uint32_t epoch, EpochOf(request));
  if (what == "lists") {
    ASSIGN_OR_RETURN(const std::vector<ListedReports> lists, board.Lists(epoch));
    return Binary(BytesOf(lists));
  }
  ASSIGN_OR_RETURN(const std::vector<Bytes> notices,
                   what == "notices" ? board.Notices(epoch) : board.Enrolments(epoch, now_ms));
  return Binary(Join(notices));
}

Result<HttpResponse> Post(Board& board, const HttpRequest& request, std::string_view what, int64_t now_ms) {
  const std::span<const uint8_t> body(reinterpret_cast<const uint8_t*>(request.body.data()),
                                      request.body.size());
  if (what == "reports") {
    ASSIGN_OR_RETURN(std::string verdict, board.PostReport(body, now_ms));
    return server::PlainResponse(std::move(verdict));
  }
  if (what != "notices") return NotHere(request);
  TRY(board.PostNotice(body, now_ms));
  return server::PlainResponse("durable");
}

// Any error of the disk is the server's, and passes: devices try again.
HttpResponse Answer(Result<HttpResponse> response) {
  if (response.has_value()) return *std::move(response);
  const ErrorCode code = response.error().code;
  if (code == ErrorCode::kInvalidArgument || code == ErrorCode::kNotFound)
    return server::ErrorResponse(response.error());
  LogWarn("a request failed: {}", response.error().message);
  return server::ErrorResponse(503, response.error());
}

}  // namespace

server::HttpRoutes BoardRoutes(Board& board, const std::function<int64_t()>& now_ms) {
  const auto what_of = [](const HttpRequest& request) {
    std::string_view what = request.path;
    what.remove_prefix(what.starts_with(kPrefix) ? kPrefix.size() : what.size());
    return what;
  };
  return {.api =
              [&board, now_ms, what_of](const HttpRequest& request) {
                if (request.path == "/readyz") return server::PlainResponse("ready\n");
                return Answer(Get(board, request, what_of(request), now_ms()));
              },
          .files = server::AnsweringHealth(NotHere),
          .uploads =
              [&board, now_ms, what_of](const HttpRequest& request) {
                return Answer(Post(board, request, what_of(request), now_ms()));
              }};
}

}  // namespace gpusonde::fleet
