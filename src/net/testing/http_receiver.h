// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

namespace gpusonde::net {

// An HTTP server on loopback for tests of what an agent sends: serves one connection after the other, with
// one request each, and keeps the requests. Without an answer it keeps the connection open.
class HttpReceiver {
 public:
  using Request = boost::beast::http::request<boost::beast::http::string_body>;
  struct Answer {
    unsigned status = 200;
    std::string body = {};
    std::string retry_after = {};
  };

  // `port` 0: any.
  explicit HttpReceiver(std::function<std::optional<Answer>(const Request&)> answer, uint16_t port = 0)
      : answer_(std::move(answer)),
        acceptor_(loop_, {boost::asio::ip::address_v4::loopback(), port}),
        thread_([this] { Serve(); }) {}
  ~HttpReceiver() {
    stop_ = true;
    boost::asio::io_context loop;
    boost::asio::ip::tcp::socket socket(loop);
    boost::system::error_code ignored;
    std::ignore = socket.connect(acceptor_.local_endpoint(), ignored);
    std::ignore = socket.close(ignored);
    thread_.join();
  }

  uint16_t port() const { return acceptor_.local_endpoint().port(); }

  // The next request, in order.
  Request Next() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(arrived_.wait_for(lock, std::chrono::seconds(30), [this] { return !requests_.empty(); }));
    if (requests_.empty()) return {};
    Request request = std::move(requests_.front());
    requests_.pop_front();
    return request;
  }

 private:
  void Serve() {
    namespace http = boost::beast::http;
    while (!stop_) {
      boost::system::error_code error;
      boost::asio::ip::tcp::socket socket(loop_);
      std::ignore = acceptor_.accept(socket, error);
      boost::beast::flat_buffer buffer;
      Request request;
      http::read(socket, buffer, request, error);
      if (error) continue;
      const std::optional<Answer> answer = answer_(request);
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(std::move(request));
        arrived_.notify_all();
      }
      if (!answer.has_value()) {
        open_.push_back(std::move(socket));
        continue;
      }
      http::response<http::string_body> response(static_cast<http::status>(answer->status), 11, answer->body);
      if (!answer->retry_after.empty()) response.set(http::field::retry_after, answer->retry_after);
      response.prepare_payload();
      http::write(socket, response, error);
    }
  }

  std::function<std::optional<Answer>(const Request&)> answer_;
  boost::asio::io_context loop_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Request> requests_;
  std::vector<boost::asio::ip::tcp::socket> open_;
  std::thread thread_;
};

}  // namespace gpusonde::net
