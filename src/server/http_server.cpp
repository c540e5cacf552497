// SPDX-License-Identifier: Apache-2.0
#include "server/http_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http.hpp>
#include <boost/none.hpp>
#include <chrono>
#include <exception>
#include <limits>
#include <list>
#include <new>
#include <optional>
#include <stop_token>
#include <thread>
#include <tuple>
#include <utility>

#include "base/cancellation.h"
#include "base/log.h"
#include "base/memory_reserve.h"
#include "base/problem_log.h"
#include "server/admission.h"
#include "server/beast_messages.h"
#include "server/connection.h"

namespace gpusonde::server {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

// The most API requests that may wait for a worker; beyond that, 503.
constexpr size_t kMaxQueued = 256;
// The most bytes of bodies that clients haven't fetched yet; beyond that, 503. A million nodes are about 27
// MB.
constexpr size_t kMaxHeldBytes = size_t{256} << 20;

// Between attempts to accept a connection while there are no file descriptors or no memory.
constexpr std::chrono::milliseconds kAcceptPause(50);

// Between looks whether a client has hung up: most answers are there before the first.
constexpr std::chrono::milliseconds kHangUpPeriod(250);

// Logs why a connection was closed; a null pointer: as it should be.
void LogClosed(const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    LogError("a connection was closed: out of memory");
  } catch (const std::exception& exception) {
    LogError("a connection was closed: {}", exception.what());
  }
}

// Counts something for as long as it lives.
template <class Counter>
class ScopedCount {
 public:
  ScopedCount(Counter& counter, size_t amount) : counter_(counter), amount_(amount) { counter_ += amount_; }
  ~ScopedCount() { counter_ -= amount_; }
  ScopedCount(const ScopedCount&) = delete;
  ScopedCount& operator=(const ScopedCount&) = delete;

 private:
  Counter& counter_;
  size_t amount_;
};

// Looks from time to time whether a client that waits for an answer has hung up. Used by the network's thread
// only.
class HangUpWatch {
 public:
  HangUpWatch(asio::io_context& network, Connection& connection)
      : state_(std::make_shared<State>(asio::steady_timer(network), &connection, std::stop_source())) {
    Look(state_);
  }
  ~HangUpWatch() {
    state_->connection = nullptr;
    state_->timer.cancel();
  }
  HangUpWatch(const HangUpWatch&) = delete;
  HangUpWatch& operator=(const HangUpWatch&) = delete;

  // Stopped once it has.
  std::stop_token token() const { return state_->gone.get_token(); }

 private:
  struct State {
    asio::steady_timer timer;
    Connection* connection;  // null: nobody looks any more
    std::stop_source gone;
  };
  static void Look(const std::shared_ptr<State>& state) {
    state->timer.expires_after(kHangUpPeriod);
    state->timer.async_wait([state](error_code) {
      if (state->connection == nullptr) return;
      if (state->connection->IsHungUp())
        state->gone.request_stop();
      else
        Look(state);
    });
  }

  std::shared_ptr<State> state_;
};

HttpResponse Busy(std::string_view why) {
  return ErrorResponse(503, {ErrorCode::kUnavailable, fmt::format("{}; try again in a moment", why)});
}

Error ListenError(error_code error, const ListenAddress& listen) {
  const std::string address = listen.ToText();
  if (error == asio::error::address_in_use)
    return {ErrorCode::kUnavailable,
            fmt::format("port {} of {} is in use by another program; stop it or choose another port: with "
                        "127.0.0.1:0 it is any that is free",
                        listen.port, listen.ip)};
  if (error == asio::error::access_denied)
    return {
        ErrorCode::kPermissionDenied,
        fmt::format("not allowed to listen on {}; ports below 1024 need root, choose a higher one", address)};
  if (error == boost::system::errc::address_not_available)
    return {ErrorCode::kInvalidArgument,
            fmt::format("can't listen on {}: {} is not an address of this machine", address, listen.ip)};
  return {ErrorCode::kIo, fmt::format("can't listen on {}: {}", address, error.message())};
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
  asio::awaitable<error_code> AcceptOne();
  void LogAccepting(error_code error);
  bool MakeRoom();
  asio::awaitable<void> Converse(tcp::socket socket);
  asio::awaitable<bool> Handshake(Connection& connection);
  asio::awaitable<bool> ServeOne(Connection& connection);
  asio::awaitable<HttpResponse> Respond(Connection& connection, const RequestHeader& header);
  asio::awaitable<std::optional<HttpResponse>> RespondToPost(Connection& connection,
                                                             http::request_parser<http::empty_body>& header);
  asio::awaitable<HttpResponse> RespondFromWorker(const HttpHandler& handler, HttpRequest request,
                                                  std::stop_token gone);
  HttpResponse Call(const HttpHandler& handler, const HttpRequest& request);

  const HttpServerOptions options;
  const HttpRoutes routes;
  Gate gate;
  HttpCounts& counts = *options.guard.counts;

  // Used by the network's thread only.
  std::list<Connection*> connections;  // those waiting for a request in the order in which they began to
  size_t queued = 0;
  size_t bodies_bytes = 0;  // of requests that are being received or handled
  bool stopping = false;
  ProblemLog accepting;

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
    if (failure) std::rethrow_exception(failure);
  });
  return {};
}

void HttpServer::State::Close() {
  stopping = true;
  error_code ignored;
  std::ignore = acceptor.close(ignored);
  for (Connection* connection : connections) connection->Close();
}

asio::awaitable<void> HttpServer::State::Accept() {
  while (!stopping) {
    try {
      const error_code error = co_await AcceptOne();
      if (stopping) co_return;
      LogAccepting(error);
      if (!error) continue;
      asio::steady_timer pause(network, kAcceptPause);
      co_await pause.async_wait(kAsTuple);
    } catch (const std::bad_alloc&) {
      // There may be no memory for a message or a timer either.
      std::this_thread::sleep_for(kAcceptPause);
    }
  }
}

asio::awaitable<error_code> HttpServer::State::AcceptOne() {
  auto [error, socket] = co_await acceptor.async_accept(kAsTuple);
  if (error || stopping) co_return error;
  ++counts.connections;
  if (connections.size() >= options.max_connections) {
    ++counts.turned_away;
    if (!MakeRoom()) co_return error_code();  // which closes it
  }
  try {
    asio::co_spawn(network, Converse(std::move(socket)), LogClosed);
  } catch (const std::bad_alloc&) {
    ++counts.turned_away;
    throw;
  }
  co_return error_code();
}

void HttpServer::State::LogAccepting(error_code error) {
  switch (accepting.Set(error ? error.message() : "")) {
    case ProblemLog::Change::kNone:
      break;
    case ProblemLog::Change::kBegan:
      LogError("connections to {} wait: {}{}", gate.listening.ToText(), error.message(),
               error == asio::error::no_descriptors ? "; allow more (ulimit -n)" : "");
      break;
    case ProblemLog::Change::kEnded:
      LogInfo("connections to {} are accepted again", gate.listening.ToText());
      break;
  }
}

// Returns false when every connection is being served.
bool HttpServer::State::MakeRoom() {
  const auto oldest = std::ranges::find(connections, true, &Connection::waiting);
  if (oldest == connections.end()) return false;
  (*oldest)->waiting = false;
  (*oldest)->Close();
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
  connection.waiting = true;
  const Connection::Handshake outcome =
      co_await connection.AcceptTls(options.guard.tls->Current(), options.handshake_timeout);
  connection.waiting = false;
  switch (outcome.result) {
    case Connection::Handshake::kDone:
      co_return true;
    case Connection::Handshake::kExcessData:
      co_return false;
    case Connection::Handshake::kFailed:
      ++counts.handshakes_failed;
      break;
    case Connection::Handshake::kCertificateRefused:
      ++counts.certificates_refused;
      LogWarn("refused the certificate of a client at {}: {}", connection.client(), outcome.reason);
      break;
    case Connection::Handshake::kNotTls:
      ++counts.not_tls;
      const HttpResponse response = ErrorResponse(
          400, {ErrorCode::kInvalidArgument, "this address speaks TLS only: use https://, not http://"});
      if (!co_await connection.Send(MessageOf(response, {}, gate), false)) co_return false;
      break;
  }
  co_await connection.CloseGently();
  co_return false;
}

// Returns false when the connection must be closed.
asio::awaitable<bool> HttpServer::State::ServeOne(Connection& connection) {
  http::request_parser<http::empty_body> parser;
  // Beast's own limit, 1 MiB, would refuse an upload by its header. Only admitted POSTs have their bodies
  // read, and RespondToPost limits those.
  parser.body_limit(boost::none);
  connection.waiting = true;
  const error_code error = co_await connection.ReadHeader(parser, options.header_timeout);
  connection.waiting = false;

  Framing framing;
  std::optional<HttpResponse> response;
  if (error) {
    response = RefusalOf(error);
    if (!response.has_value()) co_return false;
  } else if (routes.uploads && parser.get().method() == http::verb::post) {
    framing = {.version = parser.get().version(), .keep_alive = parser.keep_alive(), .head = false};
    response = co_await RespondToPost(connection, parser);
    if (!response.has_value()) co_return false;
    // The rest of a refused body can't be distinguished from the next request.
    framing.keep_alive = framing.keep_alive && (response->status == 200 || response->status == 202);
  } else if (!parser.is_done()) {
    response = RefusalOf(http::error::body_limit);
  } else {
    framing = {.version = parser.get().version(),
               .keep_alive = parser.keep_alive(),
               .head = parser.get().method() == http::verb::head};
    response = co_await Respond(connection, HeaderOf(parser.get()));
  }

  if (response->status == 401 || response->status == 403) ++counts.denied;
  const ScopedCount held(held_bytes, response->body ? response->body->size() : 0);
  const bool bodyless = framing.head || response->status == 304;
  const bool sent = co_await connection.Send(MessageOf(*response, framing, gate), bodyless);
  if (sent && !framing.keep_alive) co_await connection.CloseGently();
  co_return (sent && framing.keep_alive);
}

asio::awaitable<HttpResponse> HttpServer::State::Respond(Connection& connection,
                                                         const RequestHeader& header) {
  std::expected<HttpRequest, HttpResponse> request = Admit(header, gate);
  if (!request.has_value()) co_return std::move(request.error());
  if (!IsApiPath(request->path)) co_return Call(routes.files, *request);
  const HangUpWatch watch(network, connection);
  co_return co_await RespondFromWorker(routes.api, *std::move(request), watch.token());
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
  const ScopedCount receiving(bodies_bytes, bytes);
  const bool awaits_word = AwaitsContinue(header.get());
  http::request_parser<http::string_body> parser(std::move(header));
  parser.body_limit(options.max_body_bytes);
  if (awaits_word) {
    const bool asked = co_await connection.SendContinue();
    if (!asked) co_return std::nullopt;
  }
  const error_code error = co_await connection.ReadBody(parser, options.body_timeout);
  if (error == http::error::body_limit)
    co_return ErrorResponse(
        413, {ErrorCode::kInvalidArgument,
              fmt::format("the request's body has more than {} bytes", options.max_body_bytes)});
  if (error) co_return RefusalOf(error);
  request->body = std::move(parser.get().body());
  std::optional<HangUpWatch> watch;
  std::stop_token gone;
  if (options.posts_ask) gone = watch.emplace(network, connection).token();
  co_return co_await RespondFromWorker(routes.uploads, *std::move(request), gone);
}

asio::awaitable<HttpResponse> HttpServer::State::RespondFromWorker(const HttpHandler& handler,
                                                                   HttpRequest request,
                                                                   std::stop_token gone) {
  if (queued >= kMaxQueued) co_return Busy("too many requests are queued");
  const ScopedCount queuing(queued, 1);
  const auto work = [this, &handler, &request, &gone]() -> asio::awaitable<HttpResponse> {
    if (gone.stop_requested()) co_return Busy("the client has hung up");
    const Cancellation cancellation(gone);
    if (held_bytes > kMaxHeldBytes) co_return Busy("too many responses are waiting to be fetched");
    co_return Call(handler, request);
  };
  co_return co_await asio::co_spawn(workers, work, asio::use_awaitable);
}

HttpResponse HttpServer::State::Call(const HttpHandler& handler, const HttpRequest& request) {
  RefillMemoryReserve();
  try {
    return Compressed(handler(request), request.accepts_gzip);
  } catch (const std::bad_alloc&) {
    return ErrorResponse(
        {ErrorCode::kUnavailable,
         fmt::format("{} needs more memory than this server may use; allow more with --memory-limit-mb, or "
                     "ask about less time",
                     request.path)});
  } catch (const std::exception& exception) {
    LogError("{}: {}", request.path, exception.what());
    return ErrorResponse(
        {ErrorCode::kInternal, fmt::format("{} failed: {}", request.path, exception.what())});
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
    return Fail(ErrorCode::kUnavailable, fmt::format("can't start the server: {}", exception.what()));
  }
}

const ListenAddress& HttpServer::address() const { return state_->gate.listening; }

std::string HttpServer::Url() const {
  ListenAddress address = state_->gate.listening;
  if (address.IsEvery()) address.ip = address.ip.contains(':') ? "::1" : "127.0.0.1";
  return fmt::format("{}://{}/", state_->gate.tls ? "https" : "http", address.ToText());
}

void HttpServer::Run() {
  DrawOnMemoryReserve();  // to receive requests and send answers, whatever their evaluation needs
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
