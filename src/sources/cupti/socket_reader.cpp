// SPDX-License-Identifier: Apache-2.0
#include "sources/cupti/socket_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "wire/gpu_event.h"

namespace gpusonde::cupti {
namespace {

// 10,000 kernels a second make 0.8 MB a second. Without the privilege to exceed net.core.wmem_max (208 KB by
// default) the buffer is smaller and the library waits for us more often.
constexpr int kSendBufferBytes = 4 << 20;

std::optional<int32_t> SenderOf(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender{};
    std::memcpy(&sender, CMSG_DATA(control), sizeof sender);
    return sender.pid;
  }
  return std::nullopt;
}

}  // namespace

Result<SocketReader::ProgramEnd> SocketReader::Open() {
  std::array<int, 2> pair{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) != 0)
    return Fail(ErrnoError(errno, "socketpair"));
  Fd ours(pair[0]);
  Fd theirs(pair[1]);
  const int on = 1;
  struct stat status{};
  if (::setsockopt(ours.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
      ::fcntl(theirs.get(), F_SETFD, 0) != 0 || ::fstat(theirs.get(), &status) != 0)
    return Fail(ErrnoError(errno, "prepare a socket for the program"));
  if (::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUFFORCE, &kSendBufferBytes, sizeof kSendBufferBytes) != 0)
    (void)::setsockopt(theirs.get(), SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof kSendBufferBytes);
  sockets_.push_back(std::move(ours));
  std::string environment = fmt::format("GPUSONDE_INJECT_SOCKET={}:{}", theirs.get(), status.st_ino);
  return ProgramEnd{.fd = std::move(theirs), .environment = std::move(environment)};
}

void SocketReader::Drain(const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit) {
  size_t budget = kMaxBytes;
  std::erase_if(sockets_, [&](const Fd& socket) { return !DrainOne(socket.get(), budget, visit); });
}

// False once all writers have closed their ends.
bool SocketReader::DrainOne(int fd, size_t& budget,
                            const std::function<void(int32_t pid, std::span<const std::byte> batch)>& visit) {
  alignas(8) std::array<std::byte, GPUSONDE_GPU_BATCH_BYTES> batch;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control;
  while (budget > 0) {
    iovec vector{.iov_base = batch.data(), .iov_len = batch.size()};
    msghdr message{};
    message.msg_iov = &vector;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno == EAGAIN;
    const std::optional<int32_t> sender = SenderOf(message);
    if (got == 0 && !sender) return false;
    budget -= std::min(budget, static_cast<size_t>(got) + 1);
    if ((message.msg_flags & MSG_TRUNC) != 0 || !sender || *sender <= 0)
      drops_.Add(model::DropReason::kGpuMalformed);
    else
      visit(*sender, std::span(batch).first(static_cast<size_t>(got)));
  }
  return true;
}

std::vector<int> SocketReader::fds() const {
  std::vector<int> fds;
  fds.reserve(sockets_.size());
  for (const Fd& socket : sockets_) fds.push_back(socket.get());
  return fds;
}

}  // namespace gpusonde::cupti
