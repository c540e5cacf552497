// SPDX-License-Identifier: Apache-2.0
#include "symbols/file_protocol.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace gpusonde::symbols {
namespace {

constexpr size_t kMaxFileMessageBytes = 8192;
constexpr size_t kMaxFileNameBytes = 4096;
constexpr size_t kMaxFds = 3;
constexpr uint8_t kHasDebugFile = 0x80;

}  // namespace

Status SendFileRequest(int socket, const FileRequest& request, bool wait) {
  std::array<int, kMaxFds> fds = {request.file.get(), request.answer.get(), request.debug_file.get()};
  const size_t count = request.debug_file.valid() ? 3 : 2;
  std::string text(1,
                   static_cast<char>(static_cast<uint8_t>(request.kind) | (count == 3 ? kHasDebugFile : 0)));
  text += request.name.substr(0, kMaxFileNameBytes);
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(count * sizeof(int));
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(count * sizeof(int));
  std::memcpy(CMSG_DATA(header), fds.data(), count * sizeof(int));
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | (wait ? 0 : MSG_DONTWAIT)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "the process that reads program files is busy");
    return Fail(ErrnoError(errno, "send a request to the process that reads program files"));
  }
  return {};
}

Result<std::optional<FileRequest>> ReceiveFileRequest(int socket) {
  std::string text(kMaxFileMessageBytes, '\0');
  iovec part{.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (count < 0 && errno == EINTR);
  if (count < 0) return Fail(ErrnoError(errno, "receive a request"));
  if (count == 0) return std::nullopt;
  std::array<Fd, kMaxFds> fds;
  size_t received = 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= header->cmsg_len && received < kMaxFds; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds[received++] = Fd(fd);
    }
  }
  const auto head = static_cast<uint8_t>(text[0]);
  FileRequest request{.kind = static_cast<FileRequestKind>(head & ~kHasDebugFile),
                      .name = text.substr(1, static_cast<size_t>(count) - 1),
                      .file = std::move(fds[0]),
                      .debug_file = std::move(fds[2]),
                      .answer = std::move(fds[1])};
  if (received != ((head & kHasDebugFile) != 0 ? 3 : 2) || request.kind > FileRequestKind::kPython)
    return Fail(ErrorCode::kCorrupt, "a request about a program file does not parse");
  return request;
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
