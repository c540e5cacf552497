// SPDX-License-Identifier: Apache-2.0
#include "agent/webhook.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/log.h"
#include "base/time.h"
#include "base/version.h"
#include "diagnose/print.h"

namespace gpusonde::agent {
namespace {

constexpr int64_t kPatienceNs = 5 * kNanosPerSecond;  // with a server, for all of an attempt
constexpr int64_t kLastPatienceNs = 2 * kNanosPerSecond;

std::chrono::nanoseconds Nanos(int64_t ns) { return std::chrono::nanoseconds(ns); }

// Waits until a socket can be written to or read from.
Status Await(int fd, short events, int64_t deadline_ns) {
  for (;;) {
    const int64_t left_ns = deadline_ns - MonotonicNow();
    if (left_ns <= 0) return Fail(ErrorCode::kUnavailable, "no answer in time");
    pollfd socket{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&socket, 1, static_cast<int>(left_ns / kNanosPerMilli) + 1);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return Fail(ErrnoError(errno, "poll"));
  }
}

Result<Fd> ConnectTo(const addrinfo& address, int64_t deadline_ns) {
  Fd fd(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  if (!fd.valid()) return Fail(ErrnoError(errno, "socket"));
  if (::connect(fd.get(), address.ai_addr, address.ai_addrlen) == 0) return fd;
  if (errno != EINPROGRESS) return Fail(ErrnoError(errno, "connect"));
  TRY(Await(fd.get(), POLLOUT, deadline_ns));
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0)
    return Fail(ErrnoError(error != 0 ? error : errno, "connect"));
  return fd;
}

// To the first of the host's addresses that answers.
Result<Fd> Connect(const Webhook::Url& url, int64_t deadline_ns) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(url.host.c_str(), url.port.c_str(), &hints, &found); error != 0)
    return Fail(ErrorCode::kUnavailable,
                fmt::format("no address for {}: {}", url.host, ::gai_strerror(error)));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  Result<Fd> fd = Fail(ErrorCode::kUnavailable, "no address for " + url.host);
  for (const addrinfo* address = found; address != nullptr && !fd.has_value(); address = address->ai_next)
    fd = ConnectTo(*address, deadline_ns);
  return fd;
}

Status Send(int fd, std::string_view text, int64_t deadline_ns) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      text.remove_prefix(static_cast<size_t>(sent));
    else if (errno == EAGAIN)
      TRY(Await(fd, POLLOUT, deadline_ns));
    else if (errno != EINTR)
      return Fail(ErrnoError(errno, "send"));
  }
  return {};
}

// The first line of the answer: all that matters of it.
Result<std::string> ReceiveLine(int fd, int64_t deadline_ns) {
  std::string line;
  std::array<char, 256> part{};
  while (line.find('\n') == std::string::npos && line.size() < 1024) {
    TRY(Await(fd, POLLIN, deadline_ns));
    const ssize_t got = ::recv(fd, part.data(), part.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return Fail(ErrnoError(errno, "receive"));
    if (got == 0) break;
    line.append(part.data(), static_cast<size_t>(got));
  }
  return line.substr(0, line.find_first_of("\r\n"));
}

Status PostOnce(const Webhook::Url& url, std::string_view body) {
  const int64_t deadline_ns = MonotonicNow() + kPatienceNs;
  ASSIGN_OR_RETURN(const Fd fd, Connect(url, deadline_ns));
  const bool is_v6 = url.host.find(':') != std::string::npos;
  TRY(Send(fd.get(),
           fmt::format("POST {} HTTP/1.1\r\nHost: {}{}{}:{}\r\nUser-Agent: gpusonde/{}\r\n"
                       "Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{}",
                       url.target, is_v6 ? "[" : "", url.host, is_v6 ? "]" : "", url.port, kVersion,
                       body.size(), body),
           deadline_ns));
  ASSIGN_OR_RETURN(const std::string line, ReceiveLine(fd.get(), deadline_ns));
  // "HTTP/1.1 204 No Content"
  if (line.starts_with("HTTP/1.") && line.size() >= 12 && line[9] == '2') return {};
  return Fail(ErrorCode::kUnavailable, fmt::format("it answered \"{}\"", line.substr(0, 80)));
}

bool IsPlain(std::string_view text) {
  return std::ranges::all_of(text,
                             [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '#' && c != '@'; });
}

}  // namespace

struct Webhook::State {
  Options options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> waiting;  // the first one is under way
  Counts counts;
  bool stop = false;
  bool ended = false;

  void Run();
  bool Deliver(const std::string& body);
  // False when it is to stop.
  bool Pause(int64_t ns) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, Nanos(ns), [this] { return stop; });
  }
};

bool Webhook::State::Deliver(const std::string& body) {
  int64_t pause_ns = options.pause_ns;
  for (int attempt = 1;; ++attempt, pause_ns *= 4) {
    const Status posted = PostOnce(options.url, body);
    if (posted.has_value()) return true;
    if (attempt == kAttempts || !Pause(pause_ns)) {
      LogWarn("the webhook at {}:{} was not told of an incident: {}", options.url.host, options.url.port,
              posted.error().message);
      return false;
    }
    const std::lock_guard lock(mutex);
    ++counts.retried;
  }
}

void Webhook::State::Run() {
  std::unique_lock lock(mutex);
  for (;;) {
    changed.wait(lock, [this] { return stop || !waiting.empty(); });
    if (waiting.empty()) break;
    const std::string body = waiting.front();
    lock.unlock();
    const bool delivered = Deliver(body);
    lock.lock();
    ++(delivered ? counts.delivered : counts.given_up);
    waiting.pop_front();
    changed.notify_all();
  }
  ended = true;
  changed.notify_all();
}

Webhook::Webhook(Options options) : state_(std::make_shared<State>()) {
  state_->options = std::move(options);
  std::thread([state = state_] { state->Run(); }).detach();
}

Webhook::~Webhook() {
  (void)Flush(kLastPatienceNs);
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  while (state_->waiting.size() > 1) {
    state_->waiting.pop_back();
    ++state_->counts.given_up;
  }
  state_->changed.notify_all();
  state_->changed.wait_for(lock, Nanos(kLastPatienceNs), [this] { return state_->ended; });
  const Counts& counts = state_->counts;
  if (counts.given_up > 0 || counts.retried > 0)
    LogWarn("webhook: {} told, {} attempts repeated, {} given up", counts.delivered, counts.retried,
            counts.given_up);
}

void Webhook::Post(const diagnose::Report& report) {
  Post(diagnose::FormatNotice(report, state_->options.machine));
}

void Webhook::Post(const model::Warning& warning) {
  Post(diagnose::FormatNotice(warning, state_->options.machine));
}

void Webhook::Post(std::string body) {
  const std::lock_guard lock(state_->mutex);
  if (state_->waiting.size() >= kMostWaiting) {
    state_->waiting.erase(state_->waiting.begin() + 1);
    ++state_->counts.given_up;
  }
  state_->waiting.push_back(std::move(body));
  state_->changed.notify_all();
}

bool Webhook::Flush(int64_t most_ns) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, Nanos(most_ns), [this] { return state_->waiting.empty(); });
}

Webhook::Counts Webhook::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

Result<Webhook::Url> Webhook::ParseUrl(std::string_view text) {
  constexpr std::string_view kScheme = "http://";
  if (text.starts_with("https://"))
    return Fail(ErrorCode::kUnsupported,
                fmt::format("{}: without TLS only; let something on this machine relay it", text));
  const auto refuse = [&] {
    return Fail(ErrorCode::kInvalidArgument, fmt::format("'{}' is not http://HOST[:PORT][/PATH]", text));
  };
  if (!text.starts_with(kScheme) || !IsPlain(text)) return refuse();
  std::string_view rest = text.substr(kScheme.size());
  const size_t slash = std::min(rest.find_first_of("/?"), rest.size());
  std::string_view authority = rest.substr(0, slash);
  Url url;
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
