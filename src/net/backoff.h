// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>

namespace gpusonde::net {

// Pauses after failures in a row: the longest possible one doubles from `first_ns` to `max_ns`, and each is
// drawn at random from its upper half, so that a thousand agents don't return at the same moment. Not
// thread-safe.
class Backoff {
 public:
  Backoff(int64_t first_ns, int64_t max_ns) : first_ns_(first_ns), max_ns_(max_ns) {}

  // The pause after one more failure.
  int64_t Next() {
    const int64_t longest_ns = std::min(first_ns_ << std::min<int64_t>(failures_, 20), max_ns_);
    ++failures_;
    return std::uniform_int_distribution<int64_t>(longest_ns / 2, longest_ns)(random_);
  }
  void Reset() { failures_ = 0; }

 private:
  int64_t first_ns_;
  int64_t max_ns_;
  int64_t failures_ = 0;
  std::mt19937_64 random_{std::random_device{}()};
};

}  // namespace gpusonde::net
