// SPDX-License-Identifier: Apache-2.0
#include "net/http_client.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <ctime>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <utility>

#include "base/text.h"
#include "base/version.h"

namespace gpusonde::net {
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
  std::string_view authorization;
  std::optional<size_t> max_reply_bytes;
  const ClientTls& tls;
};

// A failure that has been explained in words.
class Explained : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Throws system_error or Explained, as all functions below do.
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
  if (body != nullptr) {
    request.set(http::field::content_type, body->type);
    if (!body->encoding.empty()) request.set(http::field::content_encoding, body->encoding);
    for (const HttpHeader& header : body->headers) request.set(header.name, header.value);
  }
  if (!exchange.authorization.empty()) request.set(http::field::authorization, exchange.authorization);
  request.keep_alive(false);
  request.prepare_payload();
  // A server that refuses a request answers before it has read the body, and closes.
  boost::system::error_code unsent;
  co_await http::async_write(stream, request, asio::redirect_error(asio::use_awaitable, unsent));
  boost::beast::flat_buffer buffer(kMaxHead);
  http::response_parser<http::string_body> parser;
  parser.header_limit(kMaxHead);
  if (exchange.max_reply_bytes.has_value()) parser.body_limit(*exchange.max_reply_bytes);
  boost::system::error_code unread;
  co_await http::async_read_header(stream, buffer, parser, asio::redirect_error(asio::use_awaitable, unread));
  // Of TLS, an alert that says why comes with reading.
  const bool is_tls_alert = unread.category() == asio::error::get_ssl_category();
  if (unread) throw system_error(unsent && !is_tls_alert ? unsent : unread);
  if (exchange.max_reply_bytes.has_value())
    co_await http::async_read(stream, buffer, parser, asio::use_awaitable);
  co_return HttpReply{.status = parser.get().result_int(),
                      .body = std::move(parser.get().body()),
                      .retry_after = std::string(parser.get()[http::field::retry_after]),
                      .server_timing = std::string(parser.get()["Server-Timing"])};
}

void Use(ssl::context& context, const ClientTls& tls) {
  boost::system::error_code error;
  const auto check = [&error](const std::string& file, std::string_view what) {
    if (error) throw Explained(fmt::format("{} has no {}: {}", file, what, error.message()));
  };
  if (tls.ca.empty())
    TrustAuthorities(context);
  else
    context.load_verify_file(tls.ca, error);
  check(tls.ca, "CA certificate in PEM");
  if (tls.certificate.empty()) return;
  // Instead of asking at the terminal.
  SSL_CTX_set_default_passwd_cb(context.native_handle(), [](char*, int, int, void*) { return -1; });
  context.use_certificate_chain_file(tls.certificate, error);
  check(tls.certificate, "certificate in PEM");
  context.use_private_key_file(tls.key, ssl::context::pem, error);
  check(tls.key, "private key in PEM, without a passphrase, of that certificate");
}

// What is wrong with the server's certificate, and what to do.
std::string Explain(long verdict, const HttpUrl& url, const ClientTls& tls) {
  const std::string reason = X509_verify_cert_error_string(verdict);
  switch (verdict) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
      // To the day, so that the text repeats and is logged once.
      return fmt::format("the server's certificate is refused: {}; this machine's clock says {:%F}", reason,
                         fmt::gmtime(std::time(nullptr)));
    case X509_V_ERR_UNSPECIFIED:  // what Asio's check of names sets
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return fmt::format("the server's certificate is refused: it is not for the name {}", url.host);
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
      return fmt::format(
          "the server's certificate is refused: {}; its CA is not {}", reason,
          tls.ca.empty() ? "one of this machine's; give its file with --tls-ca" : "in " + tls.ca);
    default:
      return fmt::format("the server's certificate is refused: {}", reason);
  }
}

// A server refuses a client's certificate when the client has sent its request already.
[[noreturn]] void Rethrow(const system_error& error, const ClientTls& tls) {
  const auto code = static_cast<unsigned long>(error.code().value());
  if (error.code().category() != asio::error::get_ssl_category()) throw error;
  switch (ERR_GET_REASON(code)) {
    case SSL_R_WRONG_VERSION_NUMBER:
      throw Explained("the server doesn't speak TLS on this port: use http://, or its TLS port");
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      throw Explained(fmt::format(
          "the server refuses {}: {}",
          tls.certificate.empty() ? "clients without a certificate; give one with --tls-cert and --tls-key"
                                  : "the certificate in " + tls.certificate,
          error.code().message()));
    default:
      throw error;
  }
}

asio::awaitable<HttpReply> Run(const Exchange& exchange, bool& connected) {
  const HttpUrl& url = exchange.url;
  const auto executor = co_await asio::this_coro::executor;
  asio::ip::tcp::resolver resolver(executor);
  const auto addresses = co_await resolver.async_resolve(url.host, url.port, asio::use_awaitable);
  asio::ip::tcp::socket socket(executor);
  co_await asio::async_connect(socket, addresses, asio::use_awaitable);
  connected = true;
  if (!url.tls) co_return co_await Talk(socket, exchange);

  ssl::context context(ssl::context::tls_client);
  context.set_options(ssl::context::default_workarounds | ssl::context::no_sslv2 | ssl::context::no_sslv3 |
                      ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  Use(context, exchange.tls);
  ssl::stream<asio::ip::tcp::socket> stream(std::move(socket), context);
  stream.set_verify_mode(ssl::verify_peer);
  stream.set_verify_callback(ssl::host_name_verification(url.host));
  if (std::string name = url.host; !IsAddress(name))  // SSL_set_tlsext_host_name without its C cast
    SSL_ctrl(stream.native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
  try {
    co_await stream.async_handshake(ssl::stream_base::client, asio::use_awaitable);
    co_return co_await Talk(stream, exchange);
  } catch (const system_error& error) {
    const long verdict = SSL_get_verify_result(stream.native_handle());
    if (verdict != X509_V_OK) throw Explained(Explain(verdict, url, exchange.tls));
    Rethrow(error, exchange.tls);
  }
}

Error ErrorOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const system_error& error) {
    return {ErrorCode::kUnavailable, error.code().message()};
  } catch (const Explained& explained) {
    return {ErrorCode::kPermissionDenied, explained.what()};
  }
}

Result<HttpReply> RunFor(const Exchange& exchange, int64_t timeout_ns) {
  std::optional<Result<HttpReply>> done;
  bool connected = false;
  asio::io_context loop(1);
  asio::co_spawn(loop, Run(exchange, connected), [&](const std::exception_ptr& thrown, HttpReply reply) {
    if (thrown)
      done = Fail(ErrorOf(thrown));
    else
      done = std::move(reply);
  });
  try {
    loop.run_for(std::chrono::nanoseconds(timeout_ns));
  } catch (const system_error& error) {
    // Names are looked up on a thread, whose start throws here and not in the coroutine.
    return Fail(ErrorCode::kUnavailable,
                fmt::format("can't start a thread to look up {}: {}; allow more (ulimit -u, pids.max of the "
                            "cgroup, TasksMax of the systemd unit)",
                            exchange.url.host, error.code().message()));
  }
  if (done.has_value()) return *std::move(done);
  return connected ? Fail(ErrorCode::kIo, "no response in time")
                   : Fail(ErrorCode::kUnavailable, "no connection in time");
}

}  // namespace

Result<HttpReply> HttpExchange(const HttpUrl& url, const HttpBody& body, size_t max_reply_bytes,
                               int64_t timeout_ns, const ClientTls& tls) {
  return RunFor({.url = url,
                 .body = &body,
                 .authorization = body.authorization,
                 .max_reply_bytes = max_reply_bytes,
                 .tls = tls},
                timeout_ns);
}

Result<HttpReply> HttpGet(const HttpUrl& url, std::string_view authorization, size_t max_reply_bytes,
                          int64_t timeout_ns, const ClientTls& tls) {
  return RunFor({.url = url,
                 .body = nullptr,
                 .authorization = authorization,
                 .max_reply_bytes = max_reply_bytes,
                 .tls = tls},
                timeout_ns);
}

Status HttpPost(const HttpUrl& url, std::string_view body, int64_t timeout_ns) {
  const HttpBody json{.content = body};
  ASSIGN_OR_RETURN(
      const HttpReply reply,
      RunFor(
          {.url = url, .body = &json, .authorization = json.authorization, .max_reply_bytes = {}, .tls = {}},
          timeout_ns));
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
    // The resolver would take what doesn't fit for another port.
    if (authority.front() != ':' || ParseNumber<uint16_t>(url.port).value_or(0) == 0) return refuse();
  }
  if (url.host.empty()) return refuse();
  return url;
}

}  // namespace gpusonde::net
