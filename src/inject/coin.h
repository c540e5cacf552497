// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace gpusonde::inject {

// An independent coin for each call of one thread, so that a stack's share of GPU time can be estimated
// without bias (Horvitz-Thompson) from the chosen calls alone. Its probability is fixed for a second by the
// thread's rate in the last one; should the thread turn out faster, it is halved each time the calls have
// doubled. Either way it depends on the number of calls only, never on what the coin chose: a token bucket
// does, and on real streams it is off by up to 97 % in total and 250 % per kernel (notes/gpu-profiling.md).
class Coin {
 public:
  // At most about this many a second and thread, as DESIGN section 7 has it.
  static constexpr uint32_t kPerSecond = 250;
  static constexpr uint32_t kCertain = 0x80000000;  // probabilities are in units of 2^-31

  // Whether this call is chosen. `second` is any count of seconds that goes up by one each.
  bool Flip(uint32_t second) {
    if (second != second_ || seen_ == limit_) [[unlikely]]
      Adapt(second);
    ++seen_;
    return Next() < probability_;
  }

  uint32_t probability() const { return probability_; }

  bool seeded() const { return random_ != 0; }
  void Seed(uint64_t random, uint32_t second, uint32_t per_second = kPerSecond) {
    random_ = random;
    second_ = second;
    per_second_ = per_second;
    Fix(0);
  }

 private:
  __attribute__((noinline)) void Adapt(uint32_t second) {
    if (second != second_) {
      Fix(seen_ / (second - second_));
      second_ = second;
    } else {
      limit_ *= 2;
      probability_ /= 2;
    }
  }

  void Fix(uint32_t expected) {
    seen_ = 0;
    probability_ = expected <= per_second_
                       ? kCertain
                       : static_cast<uint32_t>(uint64_t{kCertain} * per_second_ / expected);
    limit_ = 2 * (expected > per_second_ ? expected : per_second_);
  }

  // The upper 31 bits of Knuth's linear congruential generator (MMIX, The Art of Computer Programming
  // 2, 3.3.4).
  uint32_t Next() {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<uint32_t>(random_ >> 33);
  }

  uint64_t random_ = 0;
  uint32_t second_ = 0;
  uint32_t probability_ = 0;
  uint32_t seen_ = 0;   // calls this second
  uint32_t limit_ = 0;  // where the probability is halved
  uint32_t per_second_ = kPerSecond;
};

}  // namespace gpusonde::inject
