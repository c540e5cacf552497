// SPDX-License-Identifier: Apache-2.0
#include "symbols/file_protocol.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxFileMessageBytes = 8192;
constexpr size_t kMaxFileNameBytes = 4096;
constexpr uint8_t kHasDebugFile = 0x80;

}  // namespace

Status SendFileRequest(int socket, const FileRequest& request, Wait wait) {
  const bool has_debug_file = request.debug_file.valid();
  std::string text(
      1, static_cast<char>(static_cast<uint8_t>(request.kind) | (has_debug_file ? kHasDebugFile : 0)));
  text += request.name.substr(0, kMaxFileNameBytes);
  const int file = request.file.get(), answer = request.answer.get();
  Status sent = has_debug_file ? SendWithFds(socket, text, {file, answer, request.debug_file.get()}, wait)
                               : SendWithFds(socket, text, {file, answer}, wait);
  return sent.has_value() ? sent : Fail(std::move(sent).error().With("the process that reads program files"));
}

Result<std::optional<FileRequest>> ReceiveFileRequest(int socket) {
  ASSIGN_OR_RETURN(FdMessage message, ReceiveWithFds(socket, kMaxFileMessageBytes, Wait::kYes));
  if (message.bytes.empty()) return std::nullopt;
  const auto head = static_cast<uint8_t>(message.bytes[0]);
  const bool has_debug_file = (head & kHasDebugFile) != 0;
  const auto kind = static_cast<FileRequestKind>(head & ~kHasDebugFile);
  if (message.fds.size() != (has_debug_file ? 3 : 2) || kind > FileRequestKind::kPython)
    return Fail(ErrorCode::kCorrupt, "a request about a program file does not parse");
  return FileRequest{.kind = kind,
                     .name = message.bytes.substr(1),
                     .file = std::move(message.fds[0]),
                     .debug_file = has_debug_file ? std::move(message.fds[2]) : Fd(),
                     .answer = std::move(message.fds[1])};
}

Status SendFileAnswer(int socket, const Status& answer) {
  std::string text(1, '\0');
  if (!answer.has_value()) {
    text[0] = static_cast<char>(static_cast<uint8_t>(answer.error().code) + 1);
    text += answer.error().message.substr(0, kMaxFileMessageBytes - 1);
  }
  while (::write(socket, text.data(), text.size()) < 0)
    if (errno != EINTR) return Fail(ErrnoError(errno, "send an answer about a program file"));
  return {};
}

Result<std::optional<FileAnswer>> ReceiveFileAnswer(int socket) {
  std::string text(kMaxFileMessageBytes, '\0');
  ssize_t count = 0;
  do count = ::recv(socket, text.data(), text.size(), MSG_DONTWAIT);
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return std::nullopt;
  const auto code = static_cast<uint8_t>(text[0]);
  if (count <= 0 || code > static_cast<uint8_t>(ErrorCode::kInternal) + 1)
    return Fail(ErrorCode::kIo, "the process that reads program files has ended, or sent a malformed answer");
  if (code == 0) return FileAnswer{};
  return FileAnswer{Error{static_cast<ErrorCode>(code - 1), text.substr(1, static_cast<size_t>(count) - 1)}};
}

}  // namespace gpusonde::symbols
