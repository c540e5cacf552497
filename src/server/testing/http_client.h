// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"

// For tests: a client that can send any bytes, also invalid ones.
namespace gpusonde::server {

struct HttpAnswer {
  int status = 0;
  std::string head;  // status line and headers
  std::string body;

  // The header's value; empty when absent.
  std::string Header(std::string_view name) const {
    const size_t at = head.find("\r\n" + std::string(name) + ": ");
    if (at == std::string::npos) return {};
    const size_t begin = at + name.size() + 4;
    return head.substr(begin, head.find("\r\n", begin) - begin);
  }
};

// One connection to 127.0.0.1. Waits at most 10 s for anything.
class HttpClient {
 public:
  explicit HttpClient(uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval limit{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }

  bool connected() const { return connected_; }

  // Returns false if the server has closed the connection.
  bool Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return true;
  }

  // GET with a proper Host.
  HttpAnswer Get(std::string_view target, std::string_view more_headers = "") {
    Send("GET " + std::string(target) + " HTTP/1.1\r\nHost: localhost\r\n" + std::string(more_headers) +
         "\r\n");
    return Receive().value_or(HttpAnswer{});
  }

  // The next response; empty if the server closes before it is complete. `has_body` is false after a HEAD.
  std::optional<HttpAnswer> Receive(bool has_body = true) {
    while (!buffer_.contains("\r\n\r\n"))
      if (!ReceiveMore()) return std::nullopt;
    HttpAnswer answer;
    const size_t end = buffer_.find("\r\n\r\n") + 4;
    answer.head = buffer_.substr(0, end);
    buffer_.erase(0, end);
    answer.status = std::atoi(answer.head.c_str() + answer.head.find(' '));
    const size_t size = has_body ? std::strtoull(answer.Header("Content-Length").c_str(), nullptr, 10) : 0;
    while (buffer_.size() < size)
      if (!ReceiveMore()) return std::nullopt;
    answer.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return answer;
  }

  // Whether the server has closed, or does so within 10 s, without sending more.
  bool IsClosed() { return buffer_.empty() && !ReceiveMore() && !timed_out_; }

 private:
  bool ReceiveMore() {
    char chunk[16 << 10];
    const ssize_t received = ::recv(socket_.get(), chunk, sizeof chunk, 0);
    timed_out_ = received < 0 && errno == EAGAIN;
    if (received <= 0) return false;
    buffer_.append(chunk, static_cast<size_t>(received));
    return true;
  }

  Fd socket_;
  bool connected_ = false;
  bool timed_out_ = false;
  std::string buffer_;
};

}  // namespace gpusonde::server
