// SPDX-License-Identifier: Apache-2.0
#include "agent/http_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/version.h"

namespace gpusonde::agent {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
namespace http = boost::beast::http;
using boost::system::system_error;

constexpr uint32_t kMaxHead = 16 << 10;

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '#' && c != '@'; });
}

bool IsAddress(const std::string& host) {
  boost::system::error_code error;
  asio::ip::make_address(host, error);
  return !error;
}

// Where distributions keep certificate authorities, in addition to the folder that OpenSSL was built for.
void TrustAuthorities(ssl::context& context) {
  context.set_default_verify_paths();
  for (const char* file :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"}) {
    boost::system::error_code error;
    if (std::filesystem::exists(file, error) && !context.load_verify_file(file, error)) return;
  }
}

// What to send, and how much of the response to read: without a bound only its head.
struct Exchange {
  const HttpUrl& url;
  const HttpBody* body;  // of a POST; null: a GET
  std::optional<size_t> max_reply_bytes;
};

// Throws system_error, as all functions below do.
template <class Stream>
asio::awaitable<HttpReply> Talk(Stream& stream, const Exchange& exchange) {
  const HttpUrl& url = exchange.url;
  const HttpBody* body = exchange.body;
  http::request<http::span_body<const char>> request(body == nullptr ? http::verb::get : http::verb::post,
                                                     url.target, 11);
  if (body != nullptr) request.body() = {body->content.data(), body->content.size()};
  const bool is_v6 = url.host.find(':') != std::string::npos;
  request.set(http::field::host,
              fmt::format("{}{}{}:{}", is_v6 ? "[" : "", url.host, is_v6 ? "]" : "", url.port));
  request.set(http::field::user_agent, fmt::format("gpusonde/{}", kVersion));
  if (body != nullptr) request.set(http::field::content_type, body->type);
  if (body != nullptr && !body->authorization.empty())
    request.set(http::field::authorization, body->authorization);
  request.keep_alive(false);
  request.prepare_payload();
  co_await http::async_write(stream, request, asio::use_awaitable);
  boost::beast::flat_buffer buffer(kMaxHead);
  http::response_parser<http::string_body> parser;
  parser.header_limit(kMaxHead);
  if (exchange.max_reply_bytes.has_value()) parser.body_limit(*exchange.max_reply_bytes);
  co_await http::async_read_header(stream, buffer, parser, asio::use_awaitable);
  if (exchange.max_reply_bytes.has_value())
    co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  co_return HttpReply{.status = parser.get().result_int(), .body = std::move(parser.get().body())};
}

asio::awaitable<HttpReply> Run(const Exchange& exchange) {
  const HttpUrl& url = exchange.url;
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto addresses = co_await resolver.async_resolve(url.host, url.port, asio::use_awaitable);
  asio::ip::tcp::socket socket(executor);
  co_await asio::async_connect(socket, addresses, asio::use_awaitable);
  if (!url.tls) co_return co_await Talk(socket, exchange);

  ssl::context context(ssl::context::tls_client);
  context.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  TrustAuthorities(context);
  ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), context);
  stream.set_verify_mode(ssl::verify_peer);
  stream.set_verify_callback(ssl::host_name_verification(url.host));
  if (std::string name = url.host; !IsAddress(name))  // SSL_set_tlsext_host_name without its C cast
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  co_await stream.async_handshake(ssl::stream_base::client, asio::use_awaitable);
  co_return co_await Talk(stream, exchange);
}

Error ErrorOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const system_error& error) {
    return {ErrorCode::kUnavailable, error.code().message()};
  }
}

Result<HttpReply> RunFor(const Exchange& exchange, int64_t timeout_ns) {
  Result<HttpReply> done = Fail(ErrorCode::kUnavailable, "no response in time");
  asio::io_context loop(1);
  asio::co_spawn(loop, Run(exchange), [&](const std::exception_ptr& thrown, HttpReply reply) {
    if (thrown)
      done = Fail(ErrorOf(thrown));
    else
      done = std::move(reply);
  });
  loop.run_for(std::chrono::nanoseconds(timeout_ns));
  return done;
}

}  // namespace

Result<HttpReply> HttpExchange(const HttpUrl& url, const HttpBody& body, size_t max_reply_bytes,
                               int64_t timeout_ns) {
  return RunFor({.url = url, .body = &body, .max_reply_bytes = max_reply_bytes}, timeout_ns);
}

Result<HttpReply> HttpGet(const HttpUrl& url, size_t max_reply_bytes, int64_t timeout_ns) {
  return RunFor({.url = url, .body = nullptr, .max_reply_bytes = max_reply_bytes}, timeout_ns);
}

Status HttpPost(const HttpUrl& url, std::string_view body, int64_t timeout_ns) {
  const HttpBody json{.content = body};
  ASSIGN_OR_RETURN(const HttpReply reply,
                   RunFor({.url = url, .body = &json, .max_reply_bytes = {}}, timeout_ns));
  if (reply.status / 100 == 2) return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("the server answered {}", reply.status));
}

Result<HttpUrl> HttpUrl::Parse(std::string_view text) {
  const auto refuse = [&] {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not http[s]://HOST[:PORT][/PATH]", text));
  };
  HttpUrl url;
  url.tls = text.starts_with("https://");
  if ((!url.tls && !text.starts_with("http://")) || !IsPlain(text)) return refuse();
  if (url.tls) url.port = "443";
  std::string_view rest = text.substr(text.find("//") + 2);
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  if (slash < rest.size())
    url.target = rest[slash] == '/' ? std::string(rest.substr(slash)) : "/" + std::string(rest.substr(slash));
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse();
    url.host = authority.substr(1, end - 1);
    authority.remove_prefix(end + 1);
  } else {
    const size_t end = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, end);
    authority.remove_prefix(end);
  }
  if (!authority.empty()) {
    url.port = authority.substr(1);
    if (authority.front() != ':' || url.port.empty() || url.port.size() > 5 ||
        url.port.find_first_not_of("0123456789") != std::string::npos)
      return refuse();
  }
  if (url.host.empty()) return refuse();
  return url;
}

}  // namespace gpusonde::agent
