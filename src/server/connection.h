// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <boost/asio/any_completion_handler.hpp>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/beast_messages.h"

namespace gpusonde::server {

// Completion of an asynchronous call as (error, values…) instead of an exception.
inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

// The bytes of a connection, through TLS once that is set: one of Beast's AsyncStreams.
class Channel {
 public:
  using executor_type = boost::beast::tcp_stream::executor_type;
  using Tls = boost::asio::ssl::stream<boost::beast::tcp_stream&>;

  explicit Channel(boost::asio::ip::tcp::socket socket) : tcp_(std::move(socket)) {}

  executor_type get_executor() { return tcp_.get_executor(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Signature>(
        [this](auto handler, const Gathered<boost::asio::mutable_buffer>& gathered) {
          Read(gathered, Handler(std::move(handler)));
        },
        token, Gathered<boost::asio::mutable_buffer>(buffers));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, Signature>(
        [this](auto handler, const Gathered<boost::asio::const_buffer>& gathered) {
          Write(gathered, Handler(std::move(handler)));
        },
        token, Gathered<boost::asio::const_buffer>(buffers));
  }

  boost::beast::tcp_stream& bare() { return tcp_; }
  std::optional<Tls>& tls() { return tls_; }

 private:
  using Signature = void(boost::system::error_code, size_t);
  using Handler = boost::asio::any_completion_handler<Signature>;

  // As many buffers of a sequence as Asio sends at once. One type for all sequences, and Handler for all
  // handlers, let the code below TLS and timeouts be compiled once: half of the compile time of
  // connection.cpp.
  template <class Buffer>
  class Gathered {
   public:
    using value_type = Buffer;
    using const_iterator = const Buffer*;

    template <class Buffers>
    explicit Gathered(const Buffers& buffers) {
      auto next = boost::asio::buffer_sequence_begin(buffers);
      const auto end = boost::asio::buffer_sequence_end(buffers);
      for (; next != end && count_ < buffers_.size(); ++next)
        if (const Buffer buffer = *next; buffer.size() > 0) buffers_[count_++] = buffer;
    }
    const_iterator begin() const { return buffers_.data(); }
    const_iterator end() const { return buffers_.data() + count_; }

   private:
    std::array<Buffer, 64> buffers_;
    size_t count_ = 0;
  };

  void Read(const Gathered<boost::asio::mutable_buffer>& buffers, Handler handler);
  void Write(const Gathered<boost::asio::const_buffer>& buffers, Handler handler);

  boost::beast::tcp_stream tcp_;
  std::optional<Tls> tls_;
};

// A client of an HttpServer. All that waits for the client has a limit in time. Used by the network's thread
// only.
class Connection {
 public:
  struct Handshake {
    enum Result { kDone, kNotTls, kFailed, kCertificateRefused, kExcessData };
    Result result = kDone;
    std::string reason = {};  // of kCertificateRefused
  };

  explicit Connection(boost::asio::ip::tcp::socket socket);

  // Speaks TLS from here on, if the client does.
  boost::asio::awaitable<Handshake> AcceptTls(std::shared_ptr<boost::asio::ssl::context> context,
                                              std::chrono::milliseconds timeout);

  boost::asio::awaitable<boost::system::error_code> ReadHeader(
      boost::beast::http::request_parser<boost::beast::http::empty_body>& parser,
      std::chrono::milliseconds timeout);
  // Asks for the body of a request that waits for that. Returns false when the client is gone.
  boost::asio::awaitable<bool> SendContinue();
  // Whatever length the client has announced, it has `timeout` and a second for each 64 KiB that have
  // arrived.
  boost::asio::awaitable<boost::system::error_code> ReadBody(
      boost::beast::http::request_parser<boost::beast::http::string_body>& parser,
      std::chrono::milliseconds timeout);

  // Returns false when the client is gone or too slow. `bodyless`: sends only the header.
  boost::asio::awaitable<bool> Send(BeastResponse message, bool bodyless);

  // Closes the connection so that the last response still arrives.
  boost::asio::awaitable<void> CloseGently();
  void Close() { stream_.bare().close(); }

  // Whether the client has closed its end, or Close this one. The client could still read an answer if it had
  // only ended its requests, which clients of HTTP don't do.
  bool IsHungUp();

  // The client's address, for a log.
  std::string client();

  bool waiting = false;  // for a handshake or a request

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;  // of its TLS
  Channel stream_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace gpusonde::server
