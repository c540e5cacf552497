// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace gpusonde::pods {

// A simulated gRPC server on a Unix socket: a stand-in for kubelet and container runtimes in unit tests. The
// tests in tests/e2e have gRPC's own server instead.
class GrpcServer {
 public:
  struct Reply {
    std::string body;          // as sent, with its prefix
    std::string status = "0";  // empty: none
    bool hangs = false;        // never replies
    std::string raw = {};      // sent instead of HTTP/2
  };
  using Handler = std::function<Reply(const std::string& method)>;

  // A message as gRPC frames it.
  static std::string Framed(std::string_view message) {
    std::string framed(1, '\0');
    for (const int shift : {24, 16, 8, 0}) framed += static_cast<char>(message.size() >> shift & 0xff);
    return framed.append(message);
  }

  GrpcServer(std::string path, Handler handler) : path_(std::move(path)), handler_(std::move(handler)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.data(), path_.size());
    listener_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::jthread([this](const std::stop_token& stop) { Run(stop); });
  }
  ~GrpcServer() {
    thread_ = {};  // requests the stop, and joins
    ::unlink(path_.c_str());
  }
  int calls() const { return calls_; }

 private:
  struct Connection {
    GrpcServer* server = nullptr;
    std::map<int32_t, std::string> methods;  // by stream
    std::map<int32_t, Reply> replies;
  };

  static bool IsReadable(int fd) {
    pollfd wanted{fd, POLLIN, 0};
    return ::poll(&wanted, 1, 20) > 0;
  }

  // Without the signal that writing to a connection raises that the client has closed.
  static bool SendAll(int fd, std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  void Run(const std::stop_token& stop) {
    while (!stop.stop_requested())
      if (IsReadable(listener_.get())) Serve(Fd(::accept(listener_.get(), nullptr, nullptr)), stop);
  }

  void Serve(const Fd& socket, const std::stop_token& stop) {
    Connection connection{.server = this, .methods = {}, .replies = {}};
    if (const Reply reply = handler_(""); !reply.raw.empty()) {
      SendAll(socket.get(), reply.raw);
      return;
    }
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, OnFrame);
    nghttp2_session* session = nullptr;
    nghttp2_session_server_new(&session, callbacks, &connection);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, nullptr, 0);
    bool open = true;
    while (open && !stop.stop_requested()) {
      const uint8_t* data = nullptr;
      for (ssize_t size = 0; open && (size = nghttp2_session_mem_send(session, &data)) > 0;)
        open = SendAll(socket.get(), {reinterpret_cast<const char*>(data), static_cast<size_t>(size)});
      if (!IsReadable(socket.get())) continue;
      std::array<uint8_t, 16384> buffer{};
      const ssize_t size = ::recv(socket.get(), buffer.data(), buffer.size(), 0);
      open = open && size > 0 &&
             nghttp2_session_mem_recv(session, buffer.data(), static_cast<size_t>(size)) >= 0;
    }
    nghttp2_session_del(session);
  }

  static nghttp2_nv Header(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  static int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
                      const uint8_t* value, size_t value_size, uint8_t, void* user) {
    if (std::string_view(reinterpret_cast<const char*>(name), name_size) == ":path")
      static_cast<Connection*>(user)->methods[frame->hd.stream_id] =
          std::string(reinterpret_cast<const char*>(value), value_size);
    return 0;
  }

  static int OnFrame(nghttp2_session* session, const nghttp2_frame* frame, void* user) {
    auto& connection = *static_cast<Connection*>(user);
    const int32_t stream = frame->hd.stream_id;
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0 || !connection.methods.contains(stream)) return 0;
    ++connection.server->calls_;
    Reply& reply = connection.replies[stream] = connection.server->handler_(connection.methods[stream]);
    if (reply.hangs) return 0;
    const std::array headers = {Header(":status", "200"), Header("content-type", "application/grpc")};
    nghttp2_data_provider body{};
    body.source.ptr = &reply;
    body.read_callback = ReadBody;
    return nghttp2_submit_response(session, stream, headers.data(), headers.size(), &body);
  }

  static ssize_t ReadBody(nghttp2_session* session, int32_t stream, uint8_t* buffer, size_t size,
                          uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& reply = *static_cast<Reply*>(source->ptr);
    const size_t count = std::min(size, reply.body.size());
    std::copy_n(reply.body.data(), count, buffer);
    reply.body.erase(0, count);
    if (!reply.body.empty()) return static_cast<ssize_t>(count);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (reply.status.empty()) return static_cast<ssize_t>(count);
    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
    const std::array trailers = {Header("grpc-status", reply.status),
                                 Header("grpc-message", "as%20the test%0Ahas it %4")};
    nghttp2_submit_trailer(session, stream, trailers.data(), trailers.size());
    return static_cast<ssize_t>(count);
  }

  std::string path_;
  Handler handler_;
  Fd listener_;
  std::atomic<int> calls_ = 0;
  std::jthread thread_;
};

}  // namespace gpusonde::pods
