// SPDX-License-Identifier: Apache-2.0
#include "server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/detect_ssl.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <limits>
#include <list>
#include <optional>
#include <tuple>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "server/admission.h"

namespace gpusonde::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::seconds;

// Completion of an asynchronous call as (error, values…) instead of an exception.
constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);

constexpr uint32_t kMaxHeaderBytes = 16 << 10;
// Further requests of a pipelining client wait in its socket.
constexpr size_t kMaxBufferedBytes = size_t{2} * kMaxHeaderBytes;
// The most API requests that may wait for a worker; beyond that, 503.
constexpr size_t kMaxQueued = 256;
// The most bytes of bodies that clients haven't fetched yet; beyond that, 503. A million nodes are about 27
// MB.
constexpr size_t kMaxHeldBytes = size_t{256} << 20;
// The time a client may take to read a response: this, and a second more for each of these bytes.
constexpr auto kWriteTimeout = seconds(30);
constexpr size_t kMinBytesPerSecond = 64 << 10;
// After a response that ends a connection, the client's remaining data is read for this long: closing with
// unread data would reset the connection, and the response might be lost.
constexpr auto kLinger = seconds(2);
constexpr size_t kMaxLingerBytes = 1 << 20;

// Pages may load resources from here only and may not be framed.
constexpr std::string_view kContentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

// The bytes of a connection, through TLS once that is set: one of Beast's AsyncStreams.
class Channel {
 public:
  using executor_type = beast::tcp_stream::executor_type;
  using Tls = asio::ssl::stream<beast::tcp_stream&>;

  explicit Channel(tcp::socket socket) : tcp_(std::move(socket)) {}

  executor_type get_executor() { return tcp_.get_executor(); }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    if (tls_.has_value()) return tls_->async_read_some(buffers, std::forward<Token>(token));
    return tcp_.async_read_some(buffers, std::forward<Token>(token));
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    if (tls_.has_value()) return tls_->async_write_some(buffers, std::forward<Token>(token));
    return tcp_.async_write_some(buffers, std::forward<Token>(token));
  }

  beast::tcp_stream& bare() { return tcp_; }
  std::optional<Tls>& tls() { return tls_; }

 private:
  beast::tcp_stream tcp_;
  std::optional<Tls> tls_;
};

struct Connection {
  explicit Connection(tcp::socket socket) : stream(std::move(socket)) {}
  std::shared_ptr<asio::ssl::context> context;  // of its TLS
  Channel stream;
  beast::flat_buffer buffer{kMaxBufferedBytes};
  bool waiting = false;  // for a handshake or a request
};

// Counts something for as long as it lives.
template <class Counter>
class Counted {
 public:
  Counted(Counter& counter, size_t amount) : counter_(counter), amount_(amount) { counter_ += amount_; }
  ~Counted() { counter_ -= amount_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  Counter& counter_;
  size_t amount_;
};

// How to send a response, from the request's header.
struct Framing {
  unsigned version = 11;
  bool keep_alive = false;
  bool head = false;
};

std::string_view View(beast::string_view text) { return {text.data(), text.size()}; }

RequestHeader HeaderOf(const http::request<http::empty_body>& request) {
  return {.method = View(request.method_string()),
          .target = View(request.target()),
          .hosts = request.count(http::field::host),
          .host = View(request[http::field::host]),
          .fetch_site = View(request["Sec-Fetch-Site"]),
          .if_none_match = View(request[http::field::if_none_match]),
          .accept = View(request[http::field::accept]),
          .accept_encoding = View(request[http::field::accept_encoding]),
          .authorization = View(request[http::field::authorization]),
          .origin = View(request[http::field::origin]),
          .mcp_protocol_version = View(request["MCP-Protocol-Version"]),
          .content_type = View(request[http::field::content_type]),
          .cookie = View(request[http::field::cookie])};
}

// The response to bytes that are no request; empty if the client is gone.
std::optional<HttpResponse> RefusalOf(error_code error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow)
    return ErrorResponse(431, {ErrorCode::kInvalidArgument,
                               fmt::format("the request's header has more than {} bytes", kMaxHeaderBytes)});
  if (error == http::error::body_limit)
    return ErrorResponse(413, {ErrorCode::kInvalidArgument, "a request must not have a body"});
  static const auto& http_errors = error_code(http::error::bad_method).category();
  if (error.category() != http_errors || error == http::error::end_of_stream ||
      error == http::error::partial_message)
    return std::nullopt;
  return ErrorResponse(400,
                       {ErrorCode::kInvalidArgument, fmt::format("malformed HTTP: {}", error.message())});
}

HttpResponse Busy(std::string_view why) {
  return ErrorResponse(503, {ErrorCode::kUnavailable, fmt::format("{}; try again in a moment", why)});
}

Error ListenError(error_code error, const ListenAddress& listen) {
  const std::string address = listen.ToText();
  if (error == asio::error::address_in_use)
    return {ErrorCode::kUnavailable,
            fmt::format("port {} of {} is in use by another program; stop it or choose another port, as in "
                        "--listen 127.0.0.1:0 for any free port",
                        listen.port, listen.ip)};
  if (error == asio::error::access_denied)
    return {
        ErrorCode::kPermissionDenied,
        fmt::format("not allowed to listen on {}; ports below 1024 need root, choose a higher one", address)};
  if (error == boost::system::errc::address_not_available)
    return {ErrorCode::kInvalidArgument,
            fmt::format("cannot listen on {}: {} is not an address of this machine", address, listen.ip)};
  return {ErrorCode::kIo, fmt::format("cannot listen on {}: {}", address, error.message())};
}

}  // namespace

struct HttpServer::State {
  State(const HttpServerOptions& server_options, HttpRoutes server_routes)
      : options(server_options),
        routes(std::move(server_routes)),
        gate{.listening = server_options.listen,
             .tls = server_options.guard.tls != nullptr,
             .access = server_options.guard.access.get(),
             .get_scope = server_options.get_scope,
             .post_scope = server_options.post_scope,
             .takes_posts = static_cast<bool>(routes.uploads),
             .sign_in = server_options.sign_in},
        workers(static_cast<size_t>(server_options.workers)) {}

  Status Listen();
  void Close();

  asio::awaitable<void> Accept();
  bool MakeRoom();
  asio::awaitable<void> Converse(tcp::socket socket);
  asio::awaitable<bool> Handshake(Connection& connection);
  void NoteFailedHandshake(Connection& connection, error_code error);
  asio::awaitable<bool> ServeOne(Connection& connection);
  asio::awaitable<HttpResponse> Respond(const RequestHeader& header);
  asio::awaitable<std::optional<HttpResponse>> RespondToPost(Connection& connection,
                                                             http::request_parser<http::empty_body>& header);
  asio::awaitable<HttpResponse> RespondFromWorker(const HttpHandler& handler, HttpRequest request);
  HttpResponse Call(const HttpHandler& handler, const HttpRequest& request);
  asio::awaitable<bool> Send(Connection& connection, const HttpResponse& response, Framing framing);
  asio::awaitable<void> CloseGently(Connection& connection);

  const HttpServerOptions options;
  const HttpRoutes routes;
  Gate gate;
  HttpCounts& counts = *options.guard.counts;

  // Used by the network's thread only.
  std::list<Connection*> connections;  // those waiting for a request in the order in which they began to
  size_t queued = 0;
  size_t bodies_bytes = 0;  // of requests that are being received or handled
  bool stopping = false;

  std::atomic<size_t> held_bytes = 0;

  // Declared last, so that coroutines and work are destroyed before what they refer to.
  asio::io_context network{1};
  tcp::acceptor acceptor{network};
  asio::thread_pool workers;
};

Status HttpServer::State::Listen() {
  try {
    ListenAddress& listening = gate.listening;
    const tcp::endpoint endpoint(asio::ip::make_address(listening.ip), listening.port);
    acceptor.open(endpoint.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(endpoint);
    acceptor.listen();
    listening.port = acceptor.local_endpoint().port();
  } catch (const boost::system::system_error& error) {
    return Fail(ListenError(error.code(), gate.listening));
  }
  asio::co_spawn(network, Accept(), [](const std::exception_ptr& failure) {
    if (failure) LogError("the server stopped accepting connections: out of memory");
  });
  return {};
}

void HttpServer::State::Close() {
  stopping = true;
  error_code ignored;
  std::ignore = acceptor.close(ignored);
  for (Connection* connection : connections) connection->stream.bare().close();
}

asio::awaitable<void> HttpServer::State::Accept() {
  while (!stopping) {
    auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
    if (stopping) co_return;
    if (error) {
      // Out of file descriptors or memory, or the client left at once: try again after a pause.
      asio::steady_timer pause(network, std::chrono::milliseconds(50));
      co_await pause.async_wait(kAsTuple);
      continue;
    }
    ++counts.connections;
    if (connections.size() >= options.max_connections) {
      ++counts.turned_away;
      if (!MakeRoom()) continue;  // which closes it
    }
    asio::co_spawn(network, Converse(std::move(socket)), [](const std::exception_ptr& failure) {
      if (failure) LogError("a connection was closed: out of memory");
    });
  }
}

// Returns false when every connection is being served.
bool HttpServer::State::MakeRoom() {
  const auto oldest = std::ranges::find(connections, true, &Connection::waiting);
  if (oldest == connections.end()) return false;
  (*oldest)->waiting = false;
  (*oldest)->stream.bare().close();
  return true;
}

asio::awaitable<void> HttpServer::State::Converse(tcp::socket socket) {
  error_code ignored;
  std::ignore = socket.set_option(tcp::no_delay(true), ignored);
  Connection connection(std::move(socket));
  struct Registration {
    std::list<Connection*>& all;
    std::list<Connection*>::iterator self;
    ~Registration() { all.erase(self); }
  };
  const Registration registration{connections, connections.insert(connections.end(), &connection)};
  bool go_on = gate.tls ? co_await Handshake(connection) : true;
  while (go_on && !stopping) {
    connections.splice(connections.end(), connections, registration.self);
    go_on = co_await ServeOne(connection);
  }
}

// Returns false when the connection must be closed.
asio::awaitable<bool> HttpServer::State::Handshake(Connection& connection) {
  beast::tcp_stream& bare = connection.stream.bare();
  bare.expires_after(options.handshake_timeout);
  connection.waiting = true;
  auto [error, is_tls] = co_await beast::async_detect_ssl(bare, connection.buffer, kAsTuple);
  if (!error && is_tls) {
    connection.context = options.guard.tls->Current();
    auto& tls = connection.stream.tls().emplace(bare, *connection.context);
    auto [failed, bytes] =
        co_await tls.async_handshake(asio::ssl::stream_base::server, connection.buffer.data(), kAsTuple);
    connection.buffer.consume(bytes);
    error = failed;
  }
  connection.waiting = false;
  bare.expires_never();
  // What came before the handshake's end and isn't part of it must not be read as a request.
  if (!error && is_tls) co_return connection.buffer.size() == 0;
  connection.buffer.clear();
  if (error) {
    NoteFailedHandshake(connection, error);
    connection.stream.tls().reset();
  } else {
    ++counts.not_tls;
    const HttpResponse response = ErrorResponse(
        400, {ErrorCode::kInvalidArgument,
              fmt::format("this address speaks TLS only: use https://{}", gate.listening.ToText())});
    if (!co_await Send(connection, response, {})) co_return false;
  }
  co_await CloseGently(connection);
  co_return false;
}

void HttpServer::State::NoteFailedHandshake(Connection& connection, error_code error) {
  const long verdict = connection.stream.tls().has_value()
                           ? SSL_get_verify_result(connection.stream.tls()->native_handle())
                           : X509_V_OK;
  const bool lacks_certificate =
      error.category() == asio::error::get_ssl_category() &&
      ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE;
  if (verdict == X509_V_OK && !lacks_certificate) {
    ++counts.handshakes_failed;
    return;
  }
  ++counts.certificates_refused;
  error_code unknown;
  const auto client = connection.stream.bare().socket().remote_endpoint(unknown);
  LogWarn("refused the certificate of a client at {}: {}",
          unknown ? "an unknown address" : client.address().to_string(),
          lacks_certificate ? "there is none" : X509_verify_cert_error_string(verdict));
}

// Returns false when the connection must be closed.
asio::awaitable<bool> HttpServer::State::ServeOne(Connection& connection) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(kMaxHeaderBytes);
  connection.stream.bare().expires_after(options.header_timeout);
  connection.waiting = true;
  auto [error, bytes] =
      co_await http::async_read_header(connection.stream, connection.buffer, parser, kAsTuple);
  connection.waiting = false;
  connection.stream.bare().expires_never();

  Framing framing;
  std::optional<HttpResponse> response;
  if (error) {
    response = RefusalOf(error);
    if (!response.has_value()) co_return false;
  } else if (routes.uploads && parser.get().method() == http::verb::post) {
    framing = {.version = parser.get().version(), .keep_alive = parser.keep_alive(), .head = false};
    response = co_await RespondToPost(connection, parser);
    if (!response.has_value()) co_return false;
    // What is left of a refused body can't be told from the next request.
    framing.keep_alive = framing.keep_alive && (response->status == 200 || response->status == 202);
  } else if (!parser.is_done()) {
    response = RefusalOf(http::error::body_limit);
  } else {
    framing = {.version = parser.get().version(),
               .keep_alive = parser.keep_alive(),
               .head = parser.get().method() == http::verb::head};
    response = co_await Respond(HeaderOf(parser.get()));
  }

  if (response->status == 401 || response->status == 403) ++counts.denied;
  const Counted held(held_bytes, response->body ? response->body->size() : 0);
  const bool sent = co_await Send(connection, *response, framing);
  if (sent && !framing.keep_alive) co_await CloseGently(connection);
  co_return (sent && framing.keep_alive);
}

asio::awaitable<HttpResponse> HttpServer::State::Respond(const RequestHeader& header) {
  std::expected<HttpRequest, HttpResponse> request = Admit(header, gate);
  if (!request.has_value()) co_return std::move(request.error());
  if (!IsApiPath(request->path)) co_return Call(routes.files, *request);
  co_return co_await RespondFromWorker(routes.api, *std::move(request));
}

// Reads the body of a POST only after its header has been admitted. Empty if the client is gone.
asio::awaitable<std::optional<HttpResponse>> HttpServer::State::RespondToPost(
    Connection& connection, http::request_parser<http::empty_body>& header) {
  std::expected<HttpRequest, HttpResponse> request = Admit(HeaderOf(header.get()), gate);
  if (!request.has_value()) co_return std::move(request.error());
  // A body without a length is at most as long as any.
  const auto length = header.content_length();
  const size_t bytes =
      length.has_value()
          ? static_cast<size_t>(std::min<uint64_t>(*length, std::numeric_limits<size_t>::max()))
          : options.max_body_bytes;
  if (bytes > options.max_body_bytes)
    co_return ErrorResponse(
        413, {ErrorCode::kInvalidArgument, fmt::format("the request's body has {} bytes, the limit is {}",
                                                       bytes, options.max_body_bytes)});
  if (bodies_bytes + bytes > options.max_bodies_bytes) co_return Busy("too many requests are being received");
  const Counted receiving(bodies_bytes, bytes);
  http::request_parser<http::string_body> parser(std::move(header));
  parser.body_limit(options.max_body_bytes);
  connection.stream.bare().expires_after(kWriteTimeout + seconds(bytes / kMinBytesPerSecond));
  auto [error, read] = co_await http::async_read(connection.stream, connection.buffer, parser, kAsTuple);
  connection.stream.bare().expires_never();
  if (error == http::error::body_limit)
    co_return ErrorResponse(
        413, {ErrorCode::kInvalidArgument,
              fmt::format("the request's body has more than {} bytes", options.max_body_bytes)});
  if (error) co_return RefusalOf(error);
  request->body = std::move(parser.get().body());
  co_return co_await RespondFromWorker(routes.uploads, *std::move(request));
}

asio::awaitable<HttpResponse> HttpServer::State::RespondFromWorker(const HttpHandler& handler,
                                                                   HttpRequest request) {
  if (queued >= kMaxQueued) co_return Busy("too many requests are queued");
  const Counted queuing(queued, 1);
  const auto work = [this, &handler, &request]() -> asio::awaitable<HttpResponse> {
    if (held_bytes > kMaxHeldBytes) co_return Busy("too many responses are waiting to be fetched");
    co_return Call(handler, request);
  };
  co_return co_await asio::co_spawn(workers, work, asio::use_awaitable);
}

HttpResponse HttpServer::State::Call(const HttpHandler& handler, const HttpRequest& request) {
  try {
    return Compressed(handler(request), request.accepts_gzip);
  } catch (const std::exception& exception) {
    LogError("{}: {}", request.path, exception.what());
    return ErrorResponse(
        {ErrorCode::kInternal, fmt::format("{} failed: {}", request.path, exception.what())});
  }
}

// Returns false when the client is gone or too slow.
asio::awaitable<bool> HttpServer::State::Send(Connection& connection, const HttpResponse& response,
                                              Framing framing) {
  const std::string_view body = response.body ? *response.body : std::string_view();
  http::response<http::span_body<const char>> message(static_cast<http::status>(response.status),
                                                      framing.version);
  message.body() = {body.data(), body.size()};
  message.keep_alive(framing.keep_alive);
  message.set(http::field::cache_control, response.cache_control);
  message.set("Content-Security-Policy", kContentSecurityPolicy);
  message.set("X-Content-Type-Options", "nosniff");
  message.set("X-Frame-Options", "DENY");
  message.set("Referrer-Policy", "no-referrer");
  message.set("Cross-Origin-Opener-Policy", "same-origin");
  message.set("Cross-Origin-Resource-Policy", "same-origin");
  message.set(http::field::vary, "Accept-Encoding");
  if (!response.content_type.empty()) message.set(http::field::content_type, response.content_type);
  if (!response.etag.empty()) message.set(http::field::etag, response.etag);
  if (response.gzipped) message.set(http::field::content_encoding, "gzip");
  if (response.session.has_value())
    message.set(
        http::field::set_cookie,
        fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={}{}", CookieName(gate),
                    *response.session, response.session->empty() ? 0 : Access::kSessionNs / kNanosPerSecond,
                    gate.tls ? "; Secure" : ""));
  if (response.status == 401) message.set(http::field::www_authenticate, "Bearer");
  if (response.status == 405)
    message.set(http::field::allow, routes.uploads ? "GET, HEAD, POST" : "GET, HEAD");
  if (response.status != 304) message.content_length(body.size());

  connection.stream.bare().expires_after(kWriteTimeout + seconds(body.size() / kMinBytesPerSecond));
  http::response_serializer<http::span_body<const char>> serializer(message);
  if (framing.head || response.status == 304) {
    auto [error, bytes] = co_await http::async_write_header(connection.stream, serializer, kAsTuple);
    co_return !error;
  }
  auto [error, bytes] = co_await http::async_write(connection.stream, serializer, kAsTuple);
  co_return !error;
}

// Closes the connection so that the last response still arrives.
asio::awaitable<void> HttpServer::State::CloseGently(Connection& connection) {
  beast::tcp_stream& bare = connection.stream.bare();
  bare.expires_after(kLinger);
  if (auto& tls = connection.stream.tls(); tls.has_value()) {
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

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Create(const HttpServerOptions& options, HttpRoutes routes) {
  try {
    auto state = std::make_unique<State>(options, std::move(routes));
    TRY(state->Listen());
    return std::unique_ptr<HttpServer>(new HttpServer(std::move(state)));
  } catch (const std::exception& exception) {  // no epoll descriptor, no thread
    return Fail(ErrorCode::kUnavailable, fmt::format("cannot start the server: {}", exception.what()));
  }
}

const ListenAddress& HttpServer::address() const { return state_->gate.listening; }

std::string HttpServer::Url() const {
  ListenAddress address = state_->gate.listening;
  if (address.ip == "0.0.0.0") address.ip = "127.0.0.1";
  if (address.ip == "::") address.ip = "::1";
  return fmt::format("{}://{}/", state_->gate.tls ? "https" : "http", address.ToText());
}

void HttpServer::Run() {
  for (;;) {
    try {
      state_->network.run();
      break;
    } catch (const std::exception& exception) {
      LogError("server: {}", exception.what());
    }
  }
  state_->workers.join();
}

void HttpServer::Stop() {
  asio::post(state_->network, [state = state_.get()] { state->Close(); });
}

}  // namespace gpusonde::server
