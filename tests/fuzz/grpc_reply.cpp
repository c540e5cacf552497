// SPDX-License-Identifier: Apache-2.0
// What a server sends in answer to a call of gRPC: the frames of HTTP/2, their headers and the framed
// message.
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>

#include "base/fd.h"
#include "scratch_folder.h"
#include "sources/pods/grpc_client.h"

namespace {

using gpusonde::Fd;

// Answers each connection with the same bytes, whatever it was asked, and closes.
class Server {
 public:
  Server() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener_.get(), 8) != 0)
      std::abort();
  }
  const std::string& path() const { return path_; }

  // Serves one connection in a thread that the caller joins.
  std::jthread Answer(std::string_view bytes) const {
    return std::jthread([this, bytes] {
      const Fd socket(::accept(listener_.get(), nullptr, nullptr));
      for (std::string_view unsent = bytes; !unsent.empty();) {
        const ssize_t sent = ::send(socket.get(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
        if (sent <= 0) return;
        unsent.remove_prefix(static_cast<size_t>(sent));
      }
      ::shutdown(socket.get(), SHUT_WR);
      std::array<char, 4096> ignored{};
      while (::recv(socket.get(), ignored.data(), ignored.size(), 0) > 0) continue;
    });
  }

 private:
  ScratchFolder folder_;
  std::string path_ = folder_ / "s";
  Fd listener_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Server server;
  constexpr size_t kMaxReply = 1'000;
  const std::jthread answering = server.Answer({reinterpret_cast<const char*>(data), size});
  const auto message = gpusonde::pods::CallGrpc({.socket = server.path(),
                                                 .method = "/v1.Test/Call",
                                                 .request = "question",
                                                 .max_reply_bytes = kMaxReply,
                                                 .timeout_ns = 5 * gpusonde::kNanosPerSecond});
  if (message.has_value() ? message->size() > kMaxReply : message.error().message.empty()) std::abort();
  return 0;
}
