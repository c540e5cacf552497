// SPDX-License-Identifier: Apache-2.0
#include "mcp/time_limit.h"

namespace gpusonde::mcp {
namespace {

// A query that begins just as it is interrupted may miss that, so it is repeated.
constexpr auto kRepeat = std::chrono::milliseconds(100);

}  // namespace

TimeLimit::TimeLimit(Source& source, std::chrono::milliseconds limit)
    : watch_([this, &source, deadline = std::chrono::steady_clock::now() + limit] {
        Watch(source, deadline);
      }) {}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_all();
  watch_.join();
}

void TimeLimit::Watch(Source& source, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  while (!changed_.wait_until(lock, deadline, [this] { return done_; })) {
    exceeded_ = true;
    source.Interrupt();
    deadline = std::chrono::steady_clock::now() + kRepeat;
  }
}

}  // namespace gpusonde::mcp
