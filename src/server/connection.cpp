// SPDX-License-Identifier: Apache-2.0
#include "server/connection.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <string_view>
#include <tuple>

namespace gpusonde::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::seconds;

// Further requests of a pipelining client wait in its socket.
constexpr size_t kMaxBufferedBytes = size_t{2} * kMaxHeaderBytes;
// The time a client may take for a response: this, and a second more for each of these bytes.
constexpr auto kSendTimeout = seconds(30);
constexpr size_t kMinBytesPerSecond = 64 << 10;
// After a response that ends a connection, the client's remaining data is read for this long: closing with
// unread data would reset the connection, and the response might be lost.
constexpr auto kLinger = seconds(2);
constexpr size_t kMaxLingerBytes = 1 << 20;

// RFC 9110, section 15.2.1.
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

seconds TimeFor(size_t bytes) { return seconds(bytes / kMinBytesPerSecond); }

// Why a client's certificate was not accepted; empty if the handshake failed for another reason.
std::string CertificateError(Channel& stream, error_code error) {
  const long verdict =
      stream.tls().has_value() ? SSL_get_verify_result(stream.tls()->native_handle()) : X509_V_OK;
  if (verdict != X509_V_OK) return X509_verify_cert_error_string(verdict);
  const bool is_absent =
      error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
  return is_absent ? "there is none" : "";
}

}  // namespace

void Channel::Read(const Gathered<asio::mutable_buffer>& buffers, Handler handler) {
  if (tls_.has_value())
    tls_->async_read_some(buffers, asio::bind_executor(get_executor(), std::move(handler)));
  else
    tcp_.async_read_some(buffers, asio::bind_executor(get_executor(), std::move(handler)));
}

void Channel::Write(const Gathered<asio::const_buffer>& buffers, Handler handler) {
  if (tls_.has_value())
    tls_->async_write_some(buffers, asio::bind_executor(get_executor(), std::move(handler)));
  else
    tcp_.async_write_some(buffers, asio::bind_executor(get_executor(), std::move(handler)));
}

Connection::Connection(asio::ip::tcp::socket socket)
    : stream_(std::move(socket)), buffer_(kMaxBufferedBytes) {}

asio::awaitable<Connection::Handshake> Connection::AcceptTls(std::shared_ptr<asio::ssl::context> context,
                                                             std::chrono::milliseconds timeout) {
  beast::tcp_stream& bare = stream_.bare();
  bare.expires_after(timeout);
  auto [error, is_tls] = co_await beast::async_detect_ssl(bare, buffer_, kAsTuple);
  if (!error && is_tls) {
    context_ = std::move(context);
    auto& tls = stream_.tls().emplace(bare, *context_);
    auto [failed, bytes] =
        co_await tls.async_handshake(asio::ssl::stream_base::server, buffer_.data(), kAsTuple);
    buffer_.consume(bytes);
    error = failed;
  }
  bare.expires_never();
  if (!error && is_tls) {
    // What came before the handshake's end and isn't part of it must not be read as a request.
    co_return Handshake{buffer_.size() == 0 ? Handshake::kDone : Handshake::kExcessData};
  }
  buffer_.clear();
  if (!error) co_return Handshake{Handshake::kNotTls};
  std::string reason = CertificateError(stream_, error);
  stream_.tls().reset();
  const Handshake::Result result = reason.empty() ? Handshake::kFailed : Handshake::kCertificateRefused;
  co_return Handshake{result, std::move(reason)};
}

asio::awaitable<error_code> Connection::ReadHeader(http::request_parser<http::empty_body>& parser,
                                                   std::chrono::milliseconds timeout) {
  parser.header_limit(kMaxHeaderBytes);
  stream_.bare().expires_after(timeout);
  auto [error, bytes] = co_await http::async_read_header(stream_, buffer_, parser, kAsTuple);
  stream_.bare().expires_never();
  co_return error;
}

asio::awaitable<bool> Connection::SendContinue() {
  stream_.bare().expires_after(kSendTimeout);
  auto [error, bytes] =
      co_await asio::async_write(stream_, asio::buffer(kContinue.data(), kContinue.size()), kAsTuple);
  stream_.bare().expires_never();
  co_return !error;
}

asio::awaitable<error_code> Connection::ReadBody(http::request_parser<http::string_body>& parser,
                                                 std::chrono::milliseconds timeout) {
  const auto begin = std::chrono::steady_clock::now();
  parser.eager(true);
  error_code error;
  for (size_t received = 0; !error && !parser.is_done();) {
    stream_.bare().expires_at(begin + timeout + TimeFor(received));
    auto [failed, bytes] = co_await http::async_read_some(stream_, buffer_, parser, kAsTuple);
    error = failed;
    received += bytes;
  }
  stream_.bare().expires_never();
  co_return error;
}

asio::awaitable<bool> Connection::Send(BeastResponse message, bool bodyless) {
  stream_.bare().expires_after(kSendTimeout + TimeFor(message.body().size()));
  http::response_serializer<http::span_body<const char>> serializer(message);
  if (bodyless) {
    auto [error, bytes] = co_await http::async_write_header(stream_, serializer, kAsTuple);
    co_return !error;
  }
  auto [error, bytes] = co_await http::async_write(stream_, serializer, kAsTuple);
  co_return !error;
}

asio::awaitable<void> Connection::CloseGently() {
  beast::tcp_stream& bare = stream_.bare();
  bare.expires_after(kLinger);
  if (auto& tls = stream_.tls(); tls.has_value()) {
    co_await tls->async_shutdown(kAsTuple);
    tls.reset();
  }
  error_code ignored;
  std::ignore = bare.socket().shutdown(asio::socket_base::shutdown_send, ignored);
  std::array<char, 4096> unread;
  for (size_t total = 0; total < kMaxLingerBytes;) {
    auto [error, bytes] = co_await bare.async_read_some(asio::buffer(unread), kAsTuple);
    if (error) co_return;
    total += bytes;
  }
}

bool Connection::IsHungUp() {
  if (!stream_.bare().socket().is_open()) return true;
  // Not a read: bytes of TLS, or of a next request, may wait in front of the end.
  pollfd client{.fd = stream_.bare().socket().native_handle(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&client, 1, 0) > 0;
}

std::string Connection::client() {
  error_code unknown;
  const auto endpoint = stream_.bare().socket().remote_endpoint(unknown);
  return unknown ? "an unknown address" : endpoint.address().to_string();
}

}  // namespace gpusonde::server
