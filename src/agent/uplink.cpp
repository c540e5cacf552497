// SPDX-License-Identifier: Apache-2.0
#include "agent/uplink.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/printable.h"
#include "base/problem_log.h"
#include "base/token_file.h"
#include "net/backoff.h"
#include "spool/spool.h"
#include "spool/upload.h"

namespace gpusonde::agent {
namespace {

// The pause between requests until the server has said one.
constexpr int64_t kPauseNs = 10 * kNanosPerSecond;
constexpr int64_t kMaxAskedPauseMs = 60'000;
// What a request holds at most, unless one frame alone has more.
constexpr size_t kRequestBytes = size_t{4} << 20;
constexpr size_t kMaxReplyBytes = 16 << 10;
// A second more for each of these: what the server gives (src/server/connection.cpp).
constexpr size_t kBytesPerSecond = 64 << 10;
// Far from where arithmetic overflows.
constexpr int64_t kMaxSequence = int64_t{1} << 59;

// The integer after `"name":` in a flat JSON object that the server wrote.
std::optional<int64_t> NumberOf(std::string_view json, std::string_view name) {
  const std::string key = fmt::format("\"{}\":", name);
  const size_t at = json.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = json.substr(at + key.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// The message of an error that `serve` wrote; empty if something else answered, such as a proxy.
std::string_view MessageOf(std::string_view body) {
  constexpr std::string_view kBegin = R"({"error":{"code":")", kKey = R"("message":")";
  const size_t at = body.find(kKey);
  if (!body.starts_with(kBegin) || at == std::string_view::npos) return {};
  body.remove_prefix(at + kKey.size());
  return body.substr(0, body.find("\"}"));
}

}  // namespace

struct Uplink::State {
  explicit State(Options options_in) : options(std::move(options_in)) {}

  // Consecutive frames of one day.
  struct Request {
    Id128 spool;
    int64_t day = 0;
    int64_t first = 0;
    int64_t frames = 0;
    std::string body;
  };
  enum class Outcome : uint8_t {
    kSent,
    kRefused,    // one of the frames is
    kWrongTime,  // all of the frames are of a clock that was wrong
    kFailed,
  };

  void Run();
  // Returns false to stop.
  bool AwaitWork();
  Result<Request> NextRequest();
  Outcome Send(const Request& request);
  Outcome LogOutcome(Outcome outcome, const std::string& failure);
  void GiveUpSpool(const Error& damage);
  void Drop(const Request& request);
  void Pause();
  bool HasWork() const { return !asked_server || acknowledged < through; }

  const Options options;

  mutable std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  Id128 spool;
  std::deque<std::pair<int64_t, int64_t>> days;  // (first frame, day), rising; the first holds for all before
  int64_t through = 0;                           // the last frame that is durable in the spool
  int64_t acknowledged = 0;                      // the last one that the server has
  bool asked_server = false;
  bool urgent = false;
  bool stop = false;
  int64_t next_ns = 0;  // monotonic; when to send again
  Loss loss;

  // Used by the thread only.
  net::Backoff backoff{options.first_pause_ns, options.max_pause_ns};
  int64_t alone_through = 0;  // frames up to here are sent one by one: the server refuses some of them
  ProblemLog problem;
};

void Uplink::State::Run() {
  while (AwaitWork()) {
    Result<Request> request = NextRequest();
    if (!request.has_value() && request.error().code == ErrorCode::kCorrupt) {
      GiveUpSpool(request.error());
      continue;
    }
    const Outcome outcome =
        request.has_value() ? Send(*request) : LogOutcome(Outcome::kFailed, request.error().message);
    const std::lock_guard lock(mutex);
    changed.notify_all();
    switch (outcome) {
      case Outcome::kSent:
        backoff.Reset();
        break;
      case Outcome::kFailed:
        Pause();
        break;
      case Outcome::kRefused:
        if (request->frames > 1)
          alone_through = request->first + request->frames - 1;
        else
          Drop(*request);
        break;
      case Outcome::kWrongTime:
        Drop(*request);
        break;
    }
  }
}

// The agent begins it anew.
void Uplink::State::GiveUpSpool(const Error& damage) {
  LogError("{}; it and what follows it in the spool are lost", damage.message);
  const std::lock_guard lock(mutex);
  acknowledged = through;
  loss.spool = loss.names = true;
  changed.notify_all();
}

void Uplink::State::Drop(const Request& request) {
  acknowledged = request.first + request.frames - 1;
  loss.rows += spool::CountRows(request.body);
  loss.names = true;
}

bool Uplink::State::AwaitWork() {
  std::unique_lock lock(mutex);
  for (;;) {
    if (stop) return false;
    const int64_t wait_ns = next_ns - MonotonicNow();
    // A whole request is sent at once: after an outage there are many.
    if (spool != Id128{} && HasWork() && (urgent || wait_ns <= 0)) return true;
    if (spool != Id128{} && HasWork())
      changed.wait_for(lock, std::chrono::nanoseconds(wait_ns));
    else
      changed.wait(lock);
  }
}

// Without frames until the server has said which ones it has.
Result<Uplink::State::Request> Uplink::State::NextRequest() {
  Request request;
  int64_t last = 0;
  bool is_last_day = true;
  {
    const std::lock_guard lock(mutex);
    request.spool = spool;
    request.first = acknowledged + 1;
    while (days.size() > 1 && days[1].first <= request.first) days.pop_front();
    request.day = days.front().second;
    last = days.size() > 1 ? std::min(through, days[1].first - 1) : through;
    is_last_day = last == through;
    if (!asked_server) return request;
  }
  const Result<spool::ReadSummary> read = spool::ReadEncoded(
      options.spool_folder, request.first - 1, [&](const spool::EncodedFrame& frame) -> Result<bool> {
        if (frame.sequence > last) return false;
        const bool full =
            request.body.size() + frame.payload.size() > kRequestBytes || frame.sequence <= alone_through + 1;
        if (request.frames > 0 && full) return false;
        // Frames that an earlier run's server had are gone.
        if (request.frames == 0) request.first = frame.sequence;
        spool::AppendToUpload(frame.payload, request.body);
        ++request.frames;
        return frame.sequence < last;
      });
  // What precedes a damaged frame is sent first.
  if (!read.has_value() && request.frames == 0) return Fail(read.error());
  if (request.frames == 0 && !is_last_day) {
    // The numbers up to those of the next day were skipped.
    std::unique_lock lock(mutex);
    acknowledged = last;
    lock.unlock();
    return NextRequest();
  }
  if (request.frames == 0)
    return Fail(ErrorCode::kNotFound,
                fmt::format("frame {} is missing in {}", request.first, options.spool_folder));
  return request;
}

Uplink::State::Outcome Uplink::State::Send(const Request& request) {
  // The server would close the connection before it has read the body.
  if (request.body.size() > spool::kMaxUploadBytes)
    return LogOutcome(Outcome::kRefused, fmt::format("frame {} has {} bytes, too many for a request",
                                                     request.first, request.body.size()));
  Result<std::string> token = ReadToken(options.token_file);
  if (!token.has_value()) return LogOutcome(Outcome::kFailed, token.error().message);
  net::HttpUrl url = options.server;
  url.target = fmt::format("/api/v1/frames?host={}&spool={}&day={}&first={}", options.host,
                           request.spool.ToHex(), request.day, request.first);
  const Result<net::HttpReply> reply = net::HttpExchange(
      url, {.content = request.body, .type = "application/octet-stream", .authorization = "Bearer " + *token},
      kMaxReplyBytes,
      options.timeout_ns + static_cast<int64_t>(request.body.size() / kBytesPerSecond) * kNanosPerSecond,
      options.tls);
  if (!reply.has_value())
    return LogOutcome(Outcome::kFailed, fmt::format("the server at {}:{} can't be reached: {}", url.host,
                                                    url.port, reply.error().message));
  const std::string_view message = MessageOf(reply->body);
  if ((reply->status == 400 || reply->status == 413) && !message.empty() && request.frames > 0)
    return LogOutcome(Outcome::kRefused, fmt::format("the server refuses frames {} to {}: {}", request.first,
                                                     request.first + request.frames - 1, Printable(message)));
  const int64_t today = options.epoch_now() / kNanosPerDay;
  if (reply->status == 409 && !message.empty() && request.frames > 0 &&
      !spool::IsPlausibleDay(request.day, today))
    return LogOutcome(Outcome::kWrongTime,
                      fmt::format("the server refuses rows of {}, when this machine's clock was wrong",
                                  spool::FormatDay(request.day)));
  const std::optional<int64_t> committed = NumberOf(reply->body, "committed");
  if (reply->status != 200 || !committed.has_value())
    return LogOutcome(
        Outcome::kFailed,
        fmt::format("the server at {}:{} answers {}: {}", url.host, url.port, reply->status,
                    Printable(message.empty() ? std::string_view(reply->body).substr(0, 200) : message)));
  {
    const std::lock_guard lock(mutex);
    // A server that says more than there is has the frames that this spool has lost.
    if (!asked_server && *committed > through && *committed <= kMaxSequence) {
      loss.skip_to = *committed;
      loss.names = true;
    }
    asked_server = true;
    acknowledged = std::max(acknowledged, std::min(*committed, through));
    if (NumberOf(reply->body, "repeat_names") == 1) loss.names = true;
    const int64_t pause_ms = NumberOf(reply->body, "pause_ms").value_or(kPauseNs / kNanosPerMilli);
    const bool more =
        request.frames == 0 || request.body.size() >= kRequestBytes / 2 || request.first <= alone_through;
    next_ns =
        MonotonicNow() + (more ? 0 : std::clamp<int64_t>(pause_ms, 0, kMaxAskedPauseMs) * kNanosPerMilli);
  }
  return LogOutcome(Outcome::kSent, {});
}

// Logs a problem once, however often it repeats, and its end.
Uplink::State::Outcome Uplink::State::LogOutcome(Outcome outcome, const std::string& failure) {
  switch (problem.Set(failure)) {
    case ProblemLog::Change::kNone:
      break;
    case ProblemLog::Change::kBegan:
      LogWarn("{}; {}", failure,
              outcome == Outcome::kFailed      ? "data stays in the spool"
              : outcome == Outcome::kWrongTime ? "they are dropped"
                                               : "a frame that is refused on its own is dropped");
      break;
    case ProblemLog::Change::kEnded:
      LogInfo("the server answers again");
      break;
  }
  return outcome;
}

void Uplink::State::Pause() {
  next_ns = MonotonicNow() + backoff.Next();
  urgent = false;
}

Uplink::Uplink(Options options) : state_(std::make_shared<State>(std::move(options))) {
  std::thread([state = state_] { state->Run(); }).detach();
}

Uplink::~Uplink() {
  const std::lock_guard lock(state_->mutex);
  state_->stop = true;
  state_->changed.notify_all();
}

Result<int64_t> Uplink::CommittedThrough(const Id128& /*spool*/) {
  const std::lock_guard lock(state_->mutex);
  return state_->acknowledged;
}

Result<int64_t> Uplink::IngestedThrough(const Id128& spool, int64_t day, int64_t last_sequence) {
  const std::lock_guard lock(state_->mutex);
  state_->spool = spool;
  state_->days = {{1, day}};
  state_->through = last_sequence;
  state_->changed.notify_all();
  return last_sequence;
}

Status Uplink::Ingest(const Id128& /*spool*/, int64_t day, int64_t first_sequence,
                      std::vector<model::Batch> frames) {
  const std::lock_guard lock(state_->mutex);
  if (state_->days.back().second != day) state_->days.emplace_back(first_sequence, day);
  state_->through = first_sequence + std::ssize(frames) - 1;
  state_->changed.notify_all();
  return {};
}

Status Uplink::Flush() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.urgent = true;
  state.changed.notify_all();
  state.changed.wait_for(lock, std::chrono::nanoseconds(state.options.flush_ns),
                         [&] { return !state.HasWork() || !state.urgent; });
  state.urgent = false;
  if (const int64_t waiting = state.through - state.acknowledged; waiting > 0)
    LogInfo("{} frames stay in the spool until the next start", waiting);
  return {};
}

Sink::Loss Uplink::TakeLoss() {
  const std::lock_guard lock(state_->mutex);
  return std::exchange(state_->loss, {});
}

}  // namespace gpusonde::agent
