// SPDX-License-Identifier: Apache-2.0
#include "base/fd_passing.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace gpusonde {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(kMaxPassedFds * sizeof(int));

// The kernel fills the padding of the control buffer, too: there may be one more than kMaxPassedFds.
std::vector<Fd> OwnFds(msghdr& message) {
  std::vector<Fd> fds;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t i = 0; CMSG_LEN((i + 1) * sizeof(int)) <= header->cmsg_len; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
      fds.emplace_back(fd);
    }
  }
  return fds;
}

}  // namespace

Status SendWithFds(int socket, std::string_view bytes, std::initializer_list<int> fds, Wait wait) {
  if (fds.size() > kMaxPassedFds)
    return Fail(ErrorCode::kInternal, fmt::format("a message with {} descriptors", fds.size()));
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fds.size() > 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.begin(), fds.size() * sizeof(int));
  }
  while (::sendmsg(socket, &message, MSG_NOSIGNAL | (wait == Wait::kYes ? 0 : MSG_DONTWAIT)) < 0) {
    if (errno == EINTR) continue;
    if (errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "the receiver is busy");
    if (errno == EPIPE) return Fail(ErrorCode::kNotFound, "the receiver has gone");
    return Fail(ErrnoError(errno, "send a message"));
  }
  return {};
}

Result<FdMessage> ReceiveWithFds(int socket, size_t max_bytes, Wait wait) {
  FdMessage received{.bytes = std::string(max_bytes, '\0'), .fds = {}};
  iovec part{.iov_base = received.bytes.data(), .iov_len = received.bytes.size()};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count = 0;
  do count = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC | (wait == Wait::kYes ? 0 : MSG_DONTWAIT));
  while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "no message waits");
  if (count < 0 && errno == ECONNRESET) count = 0;
  if (count < 0) return Fail(ErrnoError(errno, "receive a message"));
  received.bytes.resize(static_cast<size_t>(count));
  received.fds = OwnFds(message);
  if ((message.msg_flags & MSG_TRUNC) != 0)
    return Fail(ErrorCode::kCorrupt, fmt::format("a message has more than {} bytes", max_bytes));
  if ((message.msg_flags & MSG_CTRUNC) != 0 || received.fds.size() > kMaxPassedFds)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("a message has more than {} descriptors, or this process has too many open",
                            kMaxPassedFds));
  return received;
}

}  // namespace gpusonde
