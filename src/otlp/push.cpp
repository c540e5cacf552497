// SPDX-License-Identifier: Apache-2.0
#include "otlp/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "base/problem_log.h"
#include "exporters/otlp/response.h"
#include "net/backoff.h"
#include "otlp/headers_file.h"
#include "otlp/retry_after.h"

namespace gpusonde::otlp {
namespace {

// A response larger than this isn't read, and its request is repeated.
constexpr size_t kMaxReplyBytes = size_t{4} << 20;
constexpr size_t kMaxShownCharacters = 200;

bool AsksForLater(unsigned status) {
  return status == 429 || status == 502 || status == 503 || status == 504;
}

}  // namespace

struct Push::State {
  explicit State(Options options_in) : options(std::move(options_in)) {}

  enum class Phase : uint8_t { kRunning, kFinishing, kStopped };
  using Lock = std::unique_lock<std::mutex>;

  void Run();
  // Does what is due, or waits for it. Returns false at the end.
  bool Step(Lock& lock);
  void Render(Lock& lock, bool last);
  void Enqueue(Request request);
  void SendFirst(Lock& lock);
  Result<net::HttpReply> Post(const Request& request) const;
  void Accept(const std::string& body);
  void Repeat(const std::string& failure, int64_t asked_pause_ns);
  void DropFirst();
  void Changed();
  void LogProblem(const std::string& text);

  const Options options;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  Phase phase = Phase::kRunning;
  bool rendering = false;
  bool rendered_last = false;
  bool ended = false;
  std::deque<Request> waiting;  // only the thread changes it
  size_t waiting_bytes = 0;
  bool first_was_tried = false;
  int64_t render_ns = MonotonicNow() + options.interval_ns;  // monotonic; when to render again
  int64_t send_ns = 0;                                       // the same of sending
  int64_t asked_ns = 0;                                      // when the receiver wants to be asked again
  int64_t finish_until_ns = 0;                               // monotonic; once it finishes
  Counts counts;

  // Used by the thread only.
  net::Backoff backoff{options.first_pause_ns, options.max_pause_ns};
  ProblemLog problem;
};

void Push::State::Run() {
  Lock lock(mutex);
  while (Step(lock)) {
  }
  ended = true;
  changed.notify_all();
}

bool Push::State::Step(Lock& lock) {
  if (phase == Phase::kStopped) return false;
  const int64_t now_ns = MonotonicNow();
  if (phase == Phase::kFinishing && !rendered_last) {
    rendered_last = true;
    Render(lock, true);
  } else if (phase == Phase::kFinishing && waiting.empty()) {
    return false;
  } else if (phase == Phase::kRunning && now_ns >= render_ns) {
    // What a slow receiver delayed isn't made up for.
    render_ns = std::max(render_ns + options.interval_ns, now_ns);
    Render(lock, false);
  } else if (!waiting.empty() && now_ns >= send_ns) {
    SendFirst(lock);
  } else {
    int64_t next_ns = phase == Phase::kRunning ? render_ns : std::numeric_limits<int64_t>::max();
    if (!waiting.empty()) next_ns = std::min(next_ns, send_ns);
    changed.wait_for(lock, std::chrono::nanoseconds(next_ns - now_ns));
  }
  return true;
}

void Push::State::Render(Lock& lock, bool last) {
  rendering = true;
  lock.unlock();
  Result<std::vector<Request>> requests = options.render(last);
  lock.lock();
  rendering = false;
  changed.notify_all();
  if (phase == Phase::kStopped) return;
  if (!requests.has_value())
    LogProblem(fmt::format("could not read {} to send: {}", options.signal, requests.error().message));
  else
    for (Request& request : *requests) Enqueue(std::move(request));
  Changed();
}

void Push::State::Enqueue(Request request) {
  waiting_bytes += request.body.size();
  waiting.push_back(std::move(request));
  while (!waiting.empty() &&
         (waiting.size() > options.max_waiting || waiting_bytes > options.max_waiting_bytes)) {
    counts.dropped += waiting.front().items;
    DropFirst();
  }
}

// Without the lock while it sends: only this thread changes `waiting`.
void Push::State::SendFirst(Lock& lock) {
  const Request& request = waiting.front();
  if (std::exchange(first_was_tried, true)) ++counts.retries;
  lock.unlock();
  const Result<net::HttpReply> reply = Post(request);
  lock.lock();
  if (phase == Phase::kStopped) return;  // Finish has counted it
  const std::string where =
      fmt::format("the receiver of {} at {}:{}", options.signal, options.url.host, options.url.port);
  if (!reply.has_value()) {
    const Error& error = reply.error();  // also of the file of headers
    Repeat(error.code == ErrorCode::kUnavailable
               ? fmt::format("{} can't be reached: {}", where, error.message)
               : error.message,
           0);
  } else if (reply->status / 100 == 2) {
    Accept(reply->body);
  } else {
    const std::string failure = fmt::format("{} answers {}: {}", where, reply->status,
                                            Shorten(Printable(reply->body), kMaxShownCharacters));
    if (AsksForLater(reply->status)) {
      Repeat(failure, ReadRetryAfter(reply->retry_after, EpochNow()).value_or(0));
    } else {
      counts.dropped += request.items;
      DropFirst();
      LogProblem(failure + "; what it refuses is dropped");
    }
  }
  Changed();
}

Result<net::HttpReply> Push::State::Post(const Request& request) const {
  std::vector<net::HttpHeader> headers;
  if (!options.headers_file.empty()) {
    ASSIGN_OR_RETURN(headers, ReadHeaders(options.headers_file));
  }
  return net::HttpExchange(
      options.url,
      {.content = request.body, .type = "application/x-protobuf", .encoding = "gzip", .headers = headers},
      kMaxReplyBytes, options.timeout_ns, options.tls);
}

void Push::State::Accept(const std::string& body) {
  const exporters::OtlpRejection rejection = exporters::ReadOtlpResponse(body);
  const int64_t rejected = std::min(rejection.items, waiting.front().items);
  counts.rejected += rejected;
  counts.accepted += waiting.front().items - rejected;
  DropFirst();
  backoff.Reset();
  LogProblem(rejected == 0 ? std::string()
                           : fmt::format("the receiver rejects some {}: {}", options.signal,
                                         Shorten(Printable(rejection.message), kMaxShownCharacters)));
}

void Push::State::Repeat(const std::string& failure, int64_t asked_pause_ns) {
  const int64_t pause_ns = backoff.Next();
  asked_ns = MonotonicNow() + asked_pause_ns;
  send_ns = asked_ns + (asked_pause_ns > 0 ? std::min(pause_ns, asked_pause_ns / 4) : pause_ns);
  LogProblem(failure + "; requests wait");
}

void Push::State::DropFirst() {
  waiting_bytes -= waiting.front().body.size();
  waiting.pop_front();
  first_was_tried = false;
}

void Push::State::Changed() {
  counts.waiting = std::ssize(waiting);
  options.on_counts(counts);
}

// Logs a problem once, however often it repeats, and its end.
void Push::State::LogProblem(const std::string& text) {
  switch (problem.Set(text)) {
    case ProblemLog::Change::kNone:
      break;
    case ProblemLog::Change::kBegan:
      LogWarn("otlp: {}", text);
      break;
    case ProblemLog::Change::kEnded:
      LogInfo("otlp: the receiver accepts {} again", options.signal);
      break;
  }
}

Push::Push(Options options) : state_(std::make_shared<State>(std::move(options))) {
  std::thread([state = state_] { state->Run(); }).detach();
}

Push::~Push() {
  State::Lock lock(state_->mutex);
  state_->phase = State::Phase::kStopped;
  state_->changed.notify_all();
  state_->changed.wait(lock, [this] { return !state_->rendering; });
}

void Push::BeginFinish() {
  State& state = *state_;
  const State::Lock lock(state.mutex);
  if (state.phase != State::Phase::kRunning) return;
  state.phase = State::Phase::kFinishing;
  state.send_ns = state.asked_ns;
  state.finish_until_ns = MonotonicNow() + state.options.finish_ns;
  state.changed.notify_all();
}

void Push::Finish() {
  BeginFinish();
  State& state = *state_;
  State::Lock lock(state.mutex);
  if (state.phase == State::Phase::kStopped) return;
  state.changed.wait_for(lock, std::chrono::nanoseconds(state.finish_until_ns - MonotonicNow()),
                         [&state] { return state.ended; });
  state.phase = State::Phase::kStopped;
  state.changed.notify_all();
  for (const Request& request : state.waiting) state.counts.dropped += request.items;
  state.Changed();
  const Counts& counts = state.counts;
  if (counts.dropped > 0 || counts.rejected > 0)
    LogWarn("otlp: of {}, {} accepted, {} rejected, {} dropped; {} attempts repeated", state.options.signal,
            counts.accepted, counts.rejected, counts.dropped, counts.retries);
}

Push::Counts Push::counts() const {
  const State::Lock lock(state_->mutex);
  return state_->counts;
}

}  // namespace gpusonde::otlp
