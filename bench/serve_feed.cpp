// SPDX-License-Identifier: Apache-2.0
// Sends rows to `gpusonde serve` as the agents of many machines do, for bench/serve_bench.py.
//
//     bench_serve_feed URL TOKEN_FILE HOSTS HOURS LIVE_SECONDS LIMIT_SECONDS
//
// The hosts' clocks begin HOURS ago. Until they have caught up with the present, requests follow each other
// as fast as they are answered, each with as many seconds of frames as the server asks agents to wait; then
// they come in real time for LIVE_SECONDS. After LIMIT_SECONDS it stops wherever it is. In the end every host
// has sent the same seconds. Writes a line of JSON each second, and one with the rows that each host sent.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iterator>
#include <mutex>
#include <queue>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/time.h"
#include "base/token_file.h"
#include "bench.h"
#include "net/http_client.h"
#include "serve_load.h"
#include "spool/codec.h"
#include "spool/upload.h"

namespace gpusonde {
namespace {

constexpr size_t kVariants = 4;        // machines that differ; the others send the same as one of these
constexpr int kSenders = 8;            // requests under way
constexpr int64_t kKeptSeconds = 300;  // for the host that is last
constexpr int64_t kTimeoutNs = 120 * kNanosPerSecond;
constexpr int64_t kDayS = 86'400;

[[noreturn]] void End(const std::string& why) {
  fmt::print(stderr, "bench_serve_feed: {}\n", why);
  std::_Exit(1);
}

// The encoded frames of a second.
struct EncodedSecond {
  std::string body;
  int64_t first = 0;  // frame
  int64_t frames = 0;
};

// Frames of one variant, made when they are first asked for. Thread-safe.
class Variant {
 public:
  Variant(uint64_t seed, int64_t first_s) : load_(seed), next_s_(first_s), begin_s_(first_s) {}

  // Appends the frames of the seconds [from_s, to_s) to the body. Returns the first one's number and how
  // many.
  std::pair<int64_t, int64_t> Append(int64_t from_s, int64_t to_s, std::string& body) {
    const std::scoped_lock lock(mutex_);
    for (; next_s_ < to_s; ++next_s_) {
      EncodedSecond second{.first = next_frame_};
      for (const model::Batch& frame : load_.Second(next_s_ * kNanosPerSecond)) {
        spool::AppendToUpload(Must(spool::EncodeBatch(frame)), second.body);
        ++second.frames;
      }
      next_frame_ += second.frames;
      seconds_.push_back(std::move(second));
      if (std::ssize(seconds_) > kKeptSeconds) {
        seconds_.pop_front();
        ++begin_s_;
      }
    }
    if (from_s < begin_s_) End("a host is more than 300 s behind the others");
    int64_t frames = 0;
    for (int64_t second = from_s; second < to_s; ++second) {
      const EncodedSecond& encoded = seconds_[static_cast<size_t>(second - begin_s_)];
      body += encoded.body;
      frames += encoded.frames;
    }
    return {seconds_[static_cast<size_t>(from_s - begin_s_)].first, frames};
  }

  const ServeLoad& load() const { return load_; }

 private:
  std::mutex mutex_;
  ServeLoad load_;
  int64_t next_s_;
  int64_t next_frame_ = 1;
  int64_t begin_s_;  // of seconds_
  std::deque<EncodedSecond> seconds_;
};

int64_t NumberIn(std::string_view json, std::string_view name, int64_t none) {
  const size_t at = json.find(name);
  if (at == std::string_view::npos) return none;
  const std::string_view rest = json.substr(at + name.size());
  std::from_chars(rest.data(), rest.data() + rest.size(), none);
  return none;
}

struct FedHost {
  int number = 0;
  int64_t sent_s = 0;  // all before is durable
  int64_t due_s = 0;   // when it sends again
};
struct Later {
  bool operator()(const FedHost& one, const FedHost& other) const { return one.due_s > other.due_s; }
};

class Feed {
 public:
  Feed(std::string_view url, const std::string& token_file, int hosts, double hours, int64_t live_s,
       int64_t limit_s)
      : url_(Must(net::HttpUrl::Parse(url))),
        token_("Bearer " + Must(ReadToken(token_file))),
        live_s_(live_s),
        first_s_(NowS() - static_cast<int64_t>(hours * 3600)),
        end_ns_(MonotonicNow() + limit_s * kNanosPerSecond) {
    for (uint64_t variant = 0; variant < kVariants; ++variant) variants_.emplace_back(variant + 1, first_s_);
    reached_s_ = first_s_;
    // Agents don't start at the same moment.
    for (int host = 0; host < hosts; ++host)
      waiting_.push({.number = host, .sent_s = first_s_, .due_s = first_s_ + 1 + host % 10});
  }

  void Run() {
    sending_ = kSenders;
    std::vector<std::jthread> senders;
    for (int i = 0; i < kSenders; ++i) senders.emplace_back([this] { SendAll(); });
    const int64_t begin_ns = MonotonicNow();
    while (sending_ > 0) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      Report(begin_ns);
    }
    senders.clear();
    std::string rows;
    for (size_t variant = 0; variant < kVariants; ++variant) {
      rows += fmt::format("{}{{", variant == 0 ? "" : ",");
      bool first = true;
      for (const auto& [table, count] : variants_[variant].load().rows())
        rows += fmt::format("{}\"{}\":{}", std::exchange(first, false) ? "" : ",", table, count);
      rows += "}";
    }
    fmt::print(
        "{{\"sent_s\":{},\"from_s\":{},\"requests\":{},\"tried_again\":{},\"bytes\":{},\"rows\":[{}]}}\n",
        stop_s_.load() - first_s_, first_s_, requests_.load(), tried_again_.load(), bytes_.load(), rows);
  }

 private:
  static int64_t NowS() { return EpochNow() / kNanosPerSecond; }

  // The next host, when it is due; false at the end.
  bool Take(FedHost& host) {
    {
      const std::scoped_lock lock(mutex_);
      if (waiting_.empty()) return false;
      host = waiting_.top();
      waiting_.pop();
      // All stop at one second.
      const bool live_is_over = live_since_s_ != 0 && NowS() >= live_since_s_ + live_s_;
      if (stop_s_ == 0 && (live_is_over || MonotonicNow() >= end_ns_)) stop_s_ = furthest_s_;
      if (stop_s_ == 0 && live_since_s_ == 0 && host.due_s >= NowS()) live_since_s_ = NowS();
      if (stop_s_ == 0) furthest_s_ = std::max(furthest_s_, host.due_s);
      reached_s_ = host.sent_s;
    }
    while (stop_s_ == 0 && NowS() < host.due_s) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return true;
  }

  void SendAll() {
    for (FedHost host; Take(host);) {
      const int64_t to_s = stop_s_ == 0 ? host.due_s : stop_s_.load();
      while (host.sent_s < to_s) {
        // A request is of one day.
        const int64_t midnight_s = (host.sent_s / kDayS + 1) * kDayS;
        Send(host, std::min(to_s, midnight_s));
      }
      const std::scoped_lock lock(mutex_);
      if (stop_s_ == 0 || host.sent_s < stop_s_) waiting_.push(host);
    }
    --sending_;
  }

  void Send(FedHost& host, int64_t to_s) {
    Variant& variant = variants_[static_cast<size_t>(host.number) % kVariants];
    std::string body;
    const auto [first, frames] = variant.Append(host.sent_s, to_s, body);
    net::HttpUrl url = url_;
    url.target = fmt::format("/api/v1/frames?host=node-{:03}&spool={:032x}&day={}&first={}", host.number,
                             host.number + 1, host.sent_s / kDayS, first);
    for (int tries = 0;; ++tries) {
      const int64_t begin_ns = MonotonicNow();
      const auto reply = net::HttpExchange(
          url, {.content = body, .type = "application/octet-stream", .authorization = token_}, 16 << 10,
          kTimeoutNs);
      const int64_t ns = MonotonicNow() - begin_ns;
      if (reply.has_value() && reply->status == 200) {
        const int64_t committed = NumberIn(reply->body, "\"committed\":", -1);
        if (committed != first + frames - 1)
          End(fmt::format("sent frames {} to {}, answered: {}", first, first + frames - 1, reply->body));
        Count(ns, std::ssize(body));
        host.sent_s = to_s;
        host.due_s = to_s + std::max<int64_t>(1, NumberIn(reply->body, "\"pause_ms\":", 10'000) / 1000);
        pause_s_ = host.due_s - to_s;
        return;
      }
      ++tried_again_;
      fmt::print(stderr, "node-{:03}: {}\n", host.number,
                 reply.has_value() ? reply->body : reply.error().message);
      if (tries > 50) End("the server does not take a request");
      std::this_thread::sleep_for(std::chrono::seconds(1));
    }
  }

  void Count(int64_t ns, int64_t bytes) {
    ++requests_;
    bytes_ += bytes;
    const std::scoped_lock lock(times_mutex_);
    times_ns_.push_back(ns);
  }

  void Report(int64_t begin_ns) {
    std::vector<int64_t> times_ns;
    {
      const std::scoped_lock lock(times_mutex_);
      times_ns.swap(times_ns_);
    }
    std::string milliseconds;
    for (const int64_t ns : times_ns)
      milliseconds += fmt::format("{}{:.1f}", milliseconds.empty() ? "" : ",", static_cast<double>(ns) / 1e6);
    fmt::print(
        "{{\"elapsed_s\":{:.1f},\"simulated_s\":{},\"now_us\":{},\"live\":{},\"pause_s\":{},\"ms\":[{}]}}\n",
        static_cast<double>(MonotonicNow() - begin_ns) / 1e9, reached_s_ - first_s_, reached_s_ * 1'000'000,
        live_since_s_ != 0, pause_s_.load(), milliseconds);
    std::fflush(stdout);
  }

  const net::HttpUrl url_;
  const std::string token_;
  const int64_t live_s_;
  const int64_t first_s_;
  const int64_t end_ns_;  // monotonic
  std::deque<Variant> variants_;
  std::atomic<int> sending_ = 0;
  std::atomic<int64_t> requests_ = 0, tried_again_ = 0, bytes_ = 0, pause_s_ = 0;
  std::atomic<int64_t> live_since_s_ = 0, stop_s_ = 0, reached_s_ = 0;
  std::mutex mutex_;  // guards what follows
  std::priority_queue<FedHost, std::vector<FedHost>, Later> waiting_;
  int64_t furthest_s_ = 0;
  std::mutex times_mutex_;  // guards times_ns_
  std::vector<int64_t> times_ns_;
};

}  // namespace
}  // namespace gpusonde

int main(int argc, char** argv) {
  if (argc != 7) {
    fmt::print(stderr, "usage: bench_serve_feed URL TOKEN_FILE HOSTS HOURS LIVE_SECONDS LIMIT_SECONDS\n");
    return 2;
  }
  gpusonde::Feed feed(argv[1], argv[2], std::atoi(argv[3]), std::atof(argv[4]), std::atoll(argv[5]),
                      std::atoll(argv[6]));
  feed.Run();
}
