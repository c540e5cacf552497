// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stop_token>
#include <utility>

namespace gpusonde {

// What a thread computes, others may no longer want: a client has hung up. Work that takes long asks
// IsRequested() from time to time, and fails with kUnavailable.
class Cancellation {
 public:
  // Until its destruction, stops of this token cancel what the thread does; an empty token: nothing does.
  explicit Cancellation(std::stop_token token) : before_(std::exchange(current, std::move(token))) {}
  ~Cancellation() { current = std::move(before_); }
  Cancellation(const Cancellation&) = delete;
  Cancellation& operator=(const Cancellation&) = delete;

  static bool IsRequested() { return current.stop_requested(); }

 private:
  inline static thread_local std::stop_token current;
  std::stop_token before_;
};

}  // namespace gpusonde
