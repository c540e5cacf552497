// SPDX-License-Identifier: Apache-2.0
#include "agent/webhook.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "base/log.h"
#include "base/time.h"
#include "diagnose/print.h"

namespace gpusonde::agent {
namespace {

constexpr int64_t kTimeoutNs = 5 * kNanosPerSecond;  // for a whole attempt
constexpr int64_t kFinalTimeoutNs = 2 * kNanosPerSecond;

std::chrono::nanoseconds Nanos(int64_t ns) { return std::chrono::nanoseconds(ns); }

}  // namespace

struct Webhook::State {
  Options options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> waiting;  // the first is being sent
  Counts counts;
  bool stop = false;
  bool ended = false;

  void Run();
  bool Deliver(const std::string& body);
  // Returns false to stop.
  bool Pause(int64_t ns) {
    std::unique_lock lock(mutex);
    return !changed.wait_for(lock, Nanos(ns), [this] { return stop; });
  }
};

bool Webhook::State::Deliver(const std::string& body) {
  int64_t pause_ns = options.pause_ns;
  for (int attempt = 1;; ++attempt, pause_ns *= 4) {
    const Status posted = net::HttpPost(options.url, body, kTimeoutNs);
    if (posted.has_value()) return true;
    if (attempt == kAttempts || !Pause(pause_ns)) {
      LogWarn("could not post an incident to the webhook at {}:{}: {}", options.url.host, options.url.port,
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
  (void)Flush(kFinalTimeoutNs);
  std::unique_lock lock(state_->mutex);
  state_->stop = true;
  while (state_->waiting.size() > 1) {
    state_->waiting.pop_back();
    ++state_->counts.given_up;
  }
  state_->changed.notify_all();
  state_->changed.wait_for(lock, Nanos(kFinalTimeoutNs), [this] { return state_->ended; });
  const Counts& counts = state_->counts;
  if (counts.given_up > 0 || counts.retried > 0)
    LogWarn("webhook: {} delivered, {} attempts repeated, {} given up", counts.delivered, counts.retried,
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
  if (state_->waiting.size() >= kMaxWaiting) {
    state_->waiting.erase(state_->waiting.begin() + 1);
    ++state_->counts.given_up;
  }
  state_->waiting.push_back(std::move(body));
  state_->changed.notify_all();
}

bool Webhook::Flush(int64_t max_ns) {
  std::unique_lock lock(state_->mutex);
  return state_->changed.wait_for(lock, Nanos(max_ns), [this] { return state_->waiting.empty(); });
}

Webhook::Counts Webhook::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace gpusonde::agent
