// SPDX-License-Identifier: Apache-2.0
#include "symbols/line_protocol.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "symbols/line_text.h"

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxLineMessageBytes = size_t{64} << 10;

Status Send(int socket, const std::string& text, int fd, bool wait) {
  iovec part{.iov_base = const_cast<char*>(text.data()), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "the debug-info reader is busy");
    return Fail(ErrnoError(errno, "send to the debug-info reader"));
  }
  return {};
}

// The message's bytes, and the descriptor that came with it. Empty at the end.
Result<std::string> Receive(int socket, bool wait, Fd& fd) {
  std::string text(kMaxLineMessageBytes, '\0');
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "no message waits");
  if (count < 0 && errno == ECONNRESET) count = 0;
  if (count < 0) return Fail(ErrnoError(errno, "receive from the debug-info reader"));
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(header), sizeof received);
    fd = Fd(received);
  }
  text.resize(static_cast<size_t>(count));
  return text;
}

}  // namespace

Status SendRequest(int socket, const LineRequest& request, bool wait) {
  std::string text = fmt::format("{}\t{}\t{}\n", request.file, request.pid, PlainText(request.path));
  for (const uint64_t offset : request.offsets) fmt::format_to(std::back_inserter(text), "{}\n", offset);
  return Send(socket, text, request.fd.get(), wait);
}

Status SendAnswer(int socket, const LineAnswer& answer) {
  std::string text = fmt::format("{}\t{}\t{}\n", answer.file, static_cast<int>(answer.kind), answer.offset);
  for (const SourceFrame& frame : answer.frames) {
    const std::string line = FrameText(frame);
    if (text.size() + line.size() > kMaxLineMessageBytes) break;
    text += line;
  }
  return Send(socket, text, -1, true);
}

Result<std::optional<LineRequest>> ReceiveRequest(int socket) {
  LineRequest request;
  ASSIGN_OR_RETURN(const std::string text, Receive(socket, true, request.fd));
  if (text.empty()) return std::nullopt;
  LineFields fields(text);
  request.file = fields.Number<uint32_t>('\t');
  request.pid = fields.Number<int32_t>('\t');
  request.path = fields.Text('\n');
  while (!fields.AtEnd() && !fields.failed()) request.offsets.push_back(fields.Number<uint64_t>('\n'));
  if (fields.failed() || !request.fd.valid() || request.offsets.size() > kMaxOffsetsPerRequest)
    return Fail(ErrorCode::kCorrupt, "a request for lines does not parse");
  return request;
}

Result<std::optional<LineAnswer>> ReceiveAnswer(int socket, bool wait) {
  Fd none;
  ASSIGN_OR_RETURN(const std::string text, Receive(socket, wait, none));
  if (text.empty()) return std::nullopt;
  LineFields fields(text);
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
