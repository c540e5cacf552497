// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_protocol.h"

#include <fmt/format.h>

#include <initializer_list>
#include <iterator>
#include <utility>

#include "symbols/line_text.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxLineMessageBytes = size_t{64} << 10;

Status Send(int socket, const std::string& text, std::initializer_list<int> fds, Wait wait) {
  Status sent = SendWithFds(socket, text, fds, wait);
  return sent.has_value() ? sent : Fail(std::move(sent).error().With("the debug-info reader"));
}

Result<FdMessage> Receive(int socket, Wait wait) {
  Result<FdMessage> received = ReceiveWithFds(socket, kMaxLineMessageBytes, wait);
  return received.has_value() ? std::move(received)
                              : Fail(std::move(received).error().With("the debug-info reader"));
}

}  // namespace

Status SendRequest(int socket, const LineRequest& request, Wait wait) {
  std::string text = fmt::format("{}\t{}\t{}\n", request.file, request.pid, PlainText(request.path));
  for (const uint64_t offset : request.offsets) fmt::format_to(std::back_inserter(text), "{}\n", offset);
  return Send(socket, text, {request.fd.get()}, wait);
}

Status SendAnswer(int socket, const LineAnswer& answer) {
  std::string text = fmt::format("{}\t{}\t{}\n", answer.file, static_cast<int>(answer.kind), answer.offset);
  for (const SourceFrame& frame : answer.frames) {
    const std::string line = FrameText(frame);
    if (text.size() + line.size() > kMaxLineMessageBytes) break;
    text += line;
  }
  return Send(socket, text, {}, Wait::kYes);
}

Result<std::optional<LineRequest>> ReceiveRequest(int socket) {
  LineRequest request;
  ASSIGN_OR_RETURN(FdMessage message, Receive(socket, Wait::kYes));
  if (message.bytes.empty()) return std::nullopt;
  LineFields fields(message.bytes);
  request.file = fields.Number<uint32_t>('\t');
  request.pid = fields.Number<int32_t>('\t');
  request.path = fields.Text('\n');
  while (!fields.AtEnd() && !fields.failed()) request.offsets.push_back(fields.Number<uint64_t>('\n'));
  if (message.fds.size() == 1) request.fd = std::move(message.fds.front());
  if (fields.failed() || !request.fd.valid() || request.offsets.size() > kMaxOffsetsPerRequest)
    return Fail(ErrorCode::kCorrupt, "a request for lines does not parse");
  return request;
}

Result<std::optional<LineAnswer>> ReceiveAnswer(int socket, Wait wait) {
  ASSIGN_OR_RETURN(const FdMessage message, Receive(socket, wait));
  if (message.bytes.empty()) return std::nullopt;
  LineFields fields(message.bytes);
  LineAnswer answer{.file = fields.Number<uint32_t>('\t')};
  const int kind = fields.Number<int>('\t');
  answer.offset = fields.Number<uint64_t>('\n');
  while (!fields.AtEnd() && !fields.failed()) answer.frames.push_back(fields.Frame());
  if (fields.failed() || kind < 0 || kind > static_cast<int>(LineAnswer::Kind::kUnreadable))
    return Fail(ErrorCode::kCorrupt, "an answer about lines does not parse");
  answer.kind = static_cast<LineAnswer::Kind>(kind);
  return answer;
}

}  // namespace gpusonde::symbols
