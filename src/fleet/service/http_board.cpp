// SPDX-License-Identifier: Apache-2.0
#include "fleet/service/http_board.h"

#include <fmt/format.h>

#include "base/printable.h"
#include "base/time.h"
#include "base/token_file.h"
#include "server/http_message.h"

namespace gpusonde::fleet {
namespace {

constexpr int64_t kTimeoutNs = 30 * kNanosPerSecond;
// The lists of ten million reports.
constexpr size_t kMaxReplyBytes = size_t{256} << 20;

Bytes BytesOf(const std::string& text) { return {text.begin(), text.end()}; }

ErrorCode CodeOf(unsigned status) {
  switch (status) {
    case 400:
      return ErrorCode::kInvalidArgument;
    case 401:
    case 403:
      return ErrorCode::kPermissionDenied;
    case 404:
      return ErrorCode::kNotFound;
    default:
      return ErrorCode::kUnavailable;
  }
}

}  // namespace

Result<std::string> HttpBoard::Ask(const std::string& target, std::span<const uint8_t> body,
                                   bool is_post) const {
  net::HttpUrl url = options_.url;
  url.target = "/api/v1/fleet/" + target;
  std::string authorization;
  if (!options_.token_file.empty()) {
    ASSIGN_OR_RETURN(const std::string token, ReadToken(options_.token_file));
    authorization = "Bearer " + token;
  }
  const std::string_view content(reinterpret_cast<const char*>(body.data()), body.size());
  const Result<net::HttpReply> reply =
      is_post
          ? net::HttpExchange(
                url, {.content = content, .type = "application/octet-stream", .authorization = authorization},
                kMaxReplyBytes, kTimeoutNs, options_.tls)
          : net::HttpGet(url, authorization, kMaxReplyBytes, kTimeoutNs, options_.tls);
  const std::string place = fmt::format("the aggregator at {}:{}", url.host, url.port);
  if (!reply.has_value())
    return Fail(ErrorCode::kUnavailable,
                fmt::format("{} can't be reached: {}", place, reply.error().message));
  if (reply->status == 200) return reply->body;
  const std::string message = server::ErrorMessageOf(reply->body);
  if (message.empty())
    return Fail(
        ErrorCode::kUnavailable,
        fmt::format("{} is no `gpusonde fleet aggregate`: it answers with status {}", place, reply->status));
  return Fail(CodeOf(reply->status), fmt::format("{} answers: {}", place, Printable(message)));
}

Result<Bytes> HttpBoard::Get(const std::string& target) const {
  ASSIGN_OR_RETURN(const std::string body, Ask(target, {}, false));
  return BytesOf(body);
}

Result<std::vector<Bytes>> HttpBoard::Notices(uint32_t epoch) {
  ASSIGN_OR_RETURN(const Bytes body, Get(fmt::format("notices?epoch={}", epoch)));
  return Split(body);
}

Result<std::vector<Bytes>> HttpBoard::Enrolments(uint32_t epoch) {
  ASSIGN_OR_RETURN(const Bytes body, Get(fmt::format("enrolments?epoch={}", epoch)));
  return Split(body);
}

Result<std::vector<ListedReports>> HttpBoard::Lists(uint32_t epoch) {
  ASSIGN_OR_RETURN(const Bytes body, Get(fmt::format("lists?epoch={}", epoch)));
  return ListsOf(body);
}

Status HttpBoard::PostNotice(std::span<const uint8_t> notice) {
  TRY(Ask("notices", notice, true));
  return {};
}

Result<std::string> HttpBoard::PostReport(std::span<const uint8_t> report) {
  return Ask("reports", report, true);
}

Result<std::string> HttpBoard::Results(std::string_view format, int64_t epochs) {
  return Ask(fmt::format("results?format={}&epochs={}", format, epochs), {}, false);
}

}  // namespace gpusonde::fleet
