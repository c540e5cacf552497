// SPDX-License-Identifier: Apache-2.0
#include "mcp/stdio.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace gpusonde::mcp {
namespace {

// Lines of a file descriptor, the rest of those that are too long left out.
class LineReader {
 public:
  explicit LineReader(int from) : from_(from) {}

  // False at the end. A line that is too long has kMaxMessageBytes + 1 bytes. Errors: kIo.
  Result<bool> Next(std::string& line) {
    line.clear();
    bool began = false;
    for (;;) {
      if (unread_.empty()) {
        const ssize_t count = ::read(from_, buffer_.data(), buffer_.size());
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) return Fail(ErrnoError(errno, "read standard input"));
        if (count == 0) return began;
        unread_ = std::string_view(buffer_.data(), static_cast<size_t>(count));
      }
      began = true;
      const size_t end = std::min(unread_.find('\n'), unread_.size());
      const std::string_view part = unread_.substr(0, end);
      line += part.substr(0, std::min(part.size(), kMaxMessageBytes + 1 - line.size()));
      const bool whole = end < unread_.size();
      unread_.remove_prefix(end + (whole ? 1 : 0));
      if (whole) return true;
    }
  }

 private:
  int from_;
  std::array<char, 64 << 10> buffer_{};
  std::string_view unread_;
};

class Session {
 public:
  Session(Server& server, int out) : server_(server), out_(out), worker_([this] { RunCalls(); }) {}

  void Take(std::string_view line) {
    auto message = ParseMessage(line);
    if (!message.has_value()) return Send(message.error());
    if (IsToolCall(*message)) return Queue(*std::move(message));
    if (const auto id = CancelledId(*message); id.has_value()) Forget(*id);
    if (const auto response = server_.Handle(*message); response.has_value()) Send(*response);
  }

  // Waits for all calls.
  void Finish() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

 private:
  void Queue(Message call) {
    std::unique_lock lock(mutex_);
    if (calls_.size() >= kMaxQueuedCalls) {
      lock.unlock();
      return Send(RpcErrorResponse(call.id, RpcError::kInvalidRequest,
                                   fmt::format("{} calls are waiting already", kMaxQueuedCalls)));
    }
    calls_.push_back(std::move(call));
    changed_.notify_all();
  }

  // A cancelled call that waits gets no response.
  void Forget(const std::string& id) {
    const std::lock_guard lock(mutex_);
    std::erase_if(calls_, [&id](const Message& call) { return call.id == id; });
  }

  void RunCalls() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ended_ || !calls_.empty(); });
      if (calls_.empty()) return;
      const Message call = std::move(calls_.front());
      calls_.pop_front();
      lock.unlock();
      if (const auto response = server_.Handle(call); response.has_value()) Send(*response);
    }
  }

  // A client that is gone is noticed at the end of the input.
  void Send(const std::string& response) {
    const std::string line = response + "\n";
    const std::lock_guard lock(sending_);
    static_cast<void>(WriteAll(out_, std::as_bytes(std::span(line))));
  }

  Server& server_;
  int out_;
  std::mutex sending_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Message> calls_;
  bool ended_ = false;
  std::thread worker_;
};

}  // namespace

Status ServeStdio(Server& server, int in, int out) {
  Session session(server, out);
  LineReader lines(in);
  std::string line;
  Result<bool> more = lines.Next(line);
  for (; more.value_or(false); more = lines.Next(line))
    if (line.find_first_not_of(" \t\r") != std::string::npos) session.Take(line);
  session.Finish();
  if (!more.has_value()) return Fail(more.error());
  return {};
}

}  // namespace gpusonde::mcp
