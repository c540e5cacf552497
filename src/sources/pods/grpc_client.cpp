// SPDX-License-Identifier: Apache-2.0
#include "sources/pods/grpc_client.h"

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "base/version.h"

namespace gpusonde::pods {
namespace {

// Before each message: a flag for compression, and its length, big-endian.
constexpr size_t kPrefixBytes = 5;
// For frames, headers and the prefix; more is a server that sends without end.
constexpr size_t kMaxOverheadBytes = size_t{1} << 20;
constexpr size_t kMaxStatusText = 256;
constexpr int32_t kWindowBytes = 1 << 20;  // a reply of some MB takes few window updates
constexpr int kStopCheckMs = 100;

// Status codes of gRPC.
constexpr std::string_view kGrpcOk = "0", kGrpcPermissionDenied = "7", kGrpcUnimplemented = "12",
                           kGrpcUnauthenticated = "16";

// One call as nghttp2's callbacks see it.
struct Exchange {
  std::string body;
  std::string_view unsent;  // of `body`
  size_t max_reply = 0;     // with the prefix
  int32_t stream = 0;
  std::string reply;
  std::string http_status, grpc_status, grpc_message;
  bool too_long = false;
  bool invalid = false;  // nghttp2 refuses what the server sends
  bool closed = false;
  uint32_t reset = NGHTTP2_NO_ERROR;
};

Exchange& ExchangeOf(void* user) { return *static_cast<Exchange*>(user); }

ssize_t ReadBody(nghttp2_session*, int32_t, uint8_t* buffer, size_t size, uint32_t* flags,
                 nghttp2_data_source*, void* user) {
  Exchange& exchange = ExchangeOf(user);
  const size_t count = std::min(size, exchange.unsent.size());
  std::memcpy(buffer, exchange.unsent.data(), count);
  exchange.unsent.remove_prefix(count);
  if (exchange.unsent.empty()) *flags |= NGHTTP2_DATA_FLAG_EOF;
  return static_cast<ssize_t>(count);
}

int OnHeader(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size,
             const uint8_t* value, size_t value_size, uint8_t, void* user) {
  Exchange& exchange = ExchangeOf(user);
  if (frame->hd.stream_id != exchange.stream) return 0;
  const std::string_view key(reinterpret_cast<const char*>(name), name_size);
  const std::string_view text(reinterpret_cast<const char*>(value), std::min(value_size, kMaxStatusText));
  if (key == ":status") exchange.http_status = text;
  if (key == "grpc-status") exchange.grpc_status = text;
  if (key == "grpc-message") exchange.grpc_message = text;
  return 0;
}

int OnData(nghttp2_session*, uint8_t, int32_t stream, const uint8_t* data, size_t size, void* user) {
  Exchange& exchange = ExchangeOf(user);
  if (stream != exchange.stream) return 0;
  if (size > exchange.max_reply - exchange.reply.size()) {
    exchange.too_long = true;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
  }
  exchange.reply.append(reinterpret_cast<const char*>(data), size);
  return 0;
}

int OnClose(nghttp2_session*, int32_t stream, uint32_t error, void* user) {
  Exchange& exchange = ExchangeOf(user);
  if (stream != exchange.stream) return 0;
  exchange.closed = true;
  exchange.reset = error;
  return 0;
}

// nghttp2 ends a connection whose peer doesn't follow the protocol.
int BeforeSending(nghttp2_session*, const nghttp2_frame* frame, void* user) {
  Exchange& exchange = ExchangeOf(user);
  exchange.invalid =
      exchange.invalid || (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR);
  return 0;
}

using Session = std::unique_ptr<nghttp2_session, decltype(&nghttp2_session_del)>;

Error InternalError(int code) {
  return {ErrorCode::kInternal, fmt::format("HTTP/2: {}", nghttp2_strerror(code))};
}

Result<Session> OpenSession(Exchange& exchange) {
  nghttp2_session_callbacks* callbacks = nullptr;
  if (const int code = nghttp2_session_callbacks_new(&callbacks); code != 0) return Fail(InternalError(code));
  nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, BeforeSending);
  nghttp2_session_callbacks_set_on_header_callback(callbacks, OnHeader);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, OnData);
  nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, OnClose);
  nghttp2_session* session = nullptr;
  const int code = nghttp2_session_client_new(&session, callbacks, &exchange);
  nghttp2_session_callbacks_del(callbacks);
  if (code != 0) return Fail(InternalError(code));
  return Session(session, nghttp2_session_del);
}

nghttp2_nv HeaderOf(std::string_view name, std::string_view value) {
  const auto bytes = [](std::string_view text) {
    return reinterpret_cast<uint8_t*>(const_cast<char*>(text.data()));  // nghttp2 copies it
  };
  return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
}

Status Submit(nghttp2_session* session, const GrpcCall& call, Exchange& exchange) {
  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kWindowBytes}}};
  if (const int code = nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings.data(), settings.size());
      code != 0)
    return Fail(InternalError(code));
  if (const int code = nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, kWindowBytes);
      code != 0)
    return Fail(InternalError(code));
  const std::string timeout = fmt::format("{}m", std::max<int64_t>(call.timeout_ns / kNanosPerMilli, 1));
  const std::string agent = fmt::format("gpusonde/{}", kVersion);
  const std::array headers = {HeaderOf(":method", "POST"),    HeaderOf(":scheme", "http"),
                              HeaderOf(":path", call.method), HeaderOf(":authority", "localhost"),
                              HeaderOf("te", "trailers"),     HeaderOf("content-type", "application/grpc"),
                              HeaderOf("user-agent", agent),  HeaderOf("grpc-timeout", timeout)};
  nghttp2_data_provider body{};
  body.read_callback = ReadBody;
  exchange.stream = nghttp2_submit_request(session, nullptr, headers.data(), headers.size(), &body, nullptr);
  if (exchange.stream < 0) return Fail(InternalError(exchange.stream));
  return {};
}

Result<Fd> Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return Fail(ErrorCode::kInvalidArgument,
                fmt::format("the path of a socket has 1 to {} bytes", sizeof address.sun_path - 1));
  std::memcpy(address.sun_path, path.data(), path.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return Fail(ErrnoError(errno, "make a socket"));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  if (errno == EAGAIN) return Fail(ErrorCode::kUnavailable, "too many connections wait at the socket");
  if (errno == ECONNREFUSED) return Fail(ErrorCode::kUnavailable, "nobody listens at the socket");
  return Fail(ErrnoError(errno, "connect"));
}

// Moves bytes between a session and its socket until the call has ended.
class Transport {
 public:
  Transport(Fd socket, nghttp2_session* session, const GrpcCall& call, const std::stop_token& stop)
      : socket_(std::move(socket)),
        session_(session),
        call_(call),
        stop_(stop),
        until_ns_(MonotonicNow() + call.timeout_ns) {}

  Status Run(const Exchange& exchange) {
    while (!exchange.closed) {
      TRY(Send());
      if (exchange.invalid) return Fail(ErrorCode::kCorrupt, "the server doesn't follow HTTP/2");
      if (exchange.closed) break;
      TRY(Wait());
      TRY(Receive(exchange));
    }
    return {};
  }

 private:
  // What nghttp2 returns is valid until it is asked again. A server that refuses a connection may have said
  // why before it closed, which is still to be received.
  Status Send() {
    while (true) {
      if (unsent_.empty()) {
        const uint8_t* data = nullptr;
        const ssize_t size = nghttp2_session_mem_send(session_, &data);
        if (size < 0) return Fail(InternalError(static_cast<int>(size)));
        if (size == 0) return {};
        unsent_ = {reinterpret_cast<const char*>(data), static_cast<size_t>(size)};
      }
      const ssize_t sent = ::send(socket_.get(), unsent_.data(), unsent_.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && errno == EAGAIN) return {};
      unsent_.remove_prefix(sent < 0 ? unsent_.size() : static_cast<size_t>(sent));
    }
  }

  Status Wait() {
    pollfd wanted{socket_.get(), static_cast<short>(POLLIN | (unsent_.empty() ? 0 : POLLOUT)), 0};
    while (true) {
      if (stop_.stop_requested()) return Fail(ErrorCode::kUnavailable, "stopped");
      const int64_t left_ms = (until_ns_ - MonotonicNow()) / kNanosPerMilli;
      if (left_ms <= 0)
        return Fail(ErrorCode::kUnavailable,
                    fmt::format("no reply within {:g} s", static_cast<double>(call_.timeout_ns) / 1e9));
      if (::poll(&wanted, 1, static_cast<int>(std::min<int64_t>(left_ms, kStopCheckMs))) > 0) return {};
    }
  }

  Status Receive(const Exchange& exchange) {
    std::array<uint8_t, 32 << 10> buffer;
    const ssize_t size = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (size < 0) return Fail(ErrorCode::kUnavailable, fmt::format("receive: {}", std::strerror(errno)));
    if (size == 0) return Fail(ErrorCode::kUnavailable, "the server closed the connection");
    received_ += static_cast<size_t>(size);
    const ssize_t used = nghttp2_session_mem_recv(session_, buffer.data(), static_cast<size_t>(size));
    if (exchange.too_long || received_ > exchange.max_reply + kMaxOverheadBytes)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("the reply has more than {} MiB", call_.max_reply_bytes >> 20));
    if (used < 0)
      return Fail(ErrorCode::kCorrupt,
                  fmt::format("the reply is no HTTP/2: {}", nghttp2_strerror(static_cast<int>(used))));
    return {};
  }

  Fd socket_;
  nghttp2_session* session_;
  const GrpcCall& call_;
  const std::stop_token& stop_;
  int64_t until_ns_;
  std::string_view unsent_;
  size_t received_ = 0;
};

// Of grpc-message, whose other bytes than printable ASCII are sent as %XX.
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

// What the statuses say, if not success.
Status CheckStatus(const Exchange& exchange) {
  if (exchange.grpc_status == kGrpcOk) return {};
  if (!exchange.grpc_status.empty()) {
    const ErrorCode code =
        exchange.grpc_status == kGrpcUnimplemented ? ErrorCode::kUnsupported
        : exchange.grpc_status == kGrpcPermissionDenied || exchange.grpc_status == kGrpcUnauthenticated
            ? ErrorCode::kPermissionDenied
            : ErrorCode::kUnavailable;
    return Fail(code, fmt::format("the server reports gRPC status {}: {}", exchange.grpc_status,
                                  Decoded(exchange.grpc_message)));
  }
  if (!exchange.http_status.empty() && exchange.http_status != "200")
    return Fail(ErrorCode::kUnavailable, fmt::format("the server answers HTTP {}", exchange.http_status));
  if (exchange.reset != NGHTTP2_NO_ERROR)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("the server broke off the call: {}", nghttp2_http2_strerror(exchange.reset)));
  return Fail(ErrorCode::kCorrupt, "the reply has no gRPC status");
}

Result<std::string> MessageOf(std::string reply) {
  if (reply.size() < kPrefixBytes) return Fail(ErrorCode::kCorrupt, "the reply has no message");
  if (reply[0] != 0) return Fail(ErrorCode::kCorrupt, "the reply is compressed, which was not asked for");
  uint32_t size = 0;
  for (size_t i = 1; i < kPrefixBytes; ++i) size = size << 8 | static_cast<uint8_t>(reply[i]);
  if (size != reply.size() - kPrefixBytes)
    return Fail(ErrorCode::kCorrupt,
                fmt::format("the reply has {} bytes instead of {}", reply.size() - kPrefixBytes, size));
  reply.erase(0, kPrefixBytes);
  return reply;
}

std::string WithPrefix(std::string_view message) {
  std::string framed(1, '\0');
  for (const int shift : {24, 16, 8, 0}) framed += static_cast<char>(message.size() >> shift & 0xff);
  return framed.append(message);
}

}  // namespace

Result<std::string> CallGrpc(const GrpcCall& call, const std::stop_token& stop) {
  Exchange exchange{
      .body = WithPrefix(call.request), .unsent = {}, .max_reply = call.max_reply_bytes + kPrefixBytes};
  exchange.unsent = exchange.body;
  ASSIGN_OR_RETURN(Fd socket, Connect(call.socket));
  ASSIGN_OR_RETURN(const Session session, OpenSession(exchange));
  TRY(Submit(session.get(), call, exchange));
  TRY(Transport(std::move(socket), session.get(), call, stop).Run(exchange));
  TRY(CheckStatus(exchange));
  return MessageOf(std::move(exchange.reply));
}

}  // namespace gpusonde::pods
